#include "fleet_admin/fleet_admin.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "fleet/control_codec.h"
#include "fleet/limits.h"
#include "fleet_admin/topics.h"
#include "fleet_admin/used_log.h"
#include "journal/log_entry.h"
#include "kafka/admin.h"

namespace stanchion::fleet_admin {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 30s;
constexpr auto kStep = 50ms;
// Sizes of logs are only shown: nobody who looks for what is wrong should wait long for them.
constexpr auto kSizesPatience = 5s;
constexpr auto kSizePatience = 500ms;
// Somewhat longer than it takes until the nodes take one of them for dead.
constexpr auto kListening = std::chrono::milliseconds(fleet::kDeadAfter) + 500ms;

Status wrong_shards(std::string_view fleet, std::uint32_t has, std::uint32_t wanted) {
  return fail(
      fmt::format("fleet {} has {} shards, and the number cannot be changed: create another "
                  "fleet with {}, or omit --shards",
                  fleet, has, wanted));
}

}  // namespace

Result<std::unique_ptr<FleetAdmin>> FleetAdmin::open(const kafka::KafkaSettings& settings,
                                                     std::string fleet) {
  kafka::KafkaSettings of_logs = settings;
  of_logs.verifies_batches = false;
  auto connection = kafka::KafkaConnection::open(of_logs);
  if (!connection) return std::unexpected(connection.error());
  auto control_connection = kafka::KafkaConnection::open(settings);
  if (!control_connection) return std::unexpected(control_connection.error());
  return std::unique_ptr<FleetAdmin>(
      new FleetAdmin(std::move(*connection), std::move(*control_connection), std::move(fleet)));
}

Status FleetAdmin::look_for_fleet(std::uint32_t shards) {
  const auto founded = is_founded();
  if (!founded) return std::unexpected(founded.error());
  if (*founded && metadata().shards != shards)
    return wrong_shards(fleet_, metadata().shards, shards);
  return {};
}

Status FleetAdmin::found(std::uint32_t shards, bool one_copy, os::Entropy& entropy, Instant now,
                         const std::function<void(std::string_view)>& say) {
  RETURN_IF_FAILED(look_for_fleet(shards));
  if (!state_.metadata())
    RETURN_IF_FAILED(for_each_log([this](ShardIndex shard) {
      return refuse_log_with_entries(*connection_, log_partition(fleet_, shard));
    }));
  RETURN_IF_FAILED(make_topics(shards, one_copy, say));
  if (state_.metadata()) {
    say(fmt::format("fleet {} exists already, with {} shards", fleet_, shards));
    return {};
  }
  // 0 means that there is none.
  return write_metadata({.id = entropy.u64() | 1,
                         .name = fleet_,
                         .shards = shards,
                         .format = journal::kLogEntryVersion,
                         .created = now},
                        say);
}

Status FleetAdmin::found_with(const Beginning& beginning, std::uint32_t shards, bool one_copy,
                              Instant now, const std::function<void(std::string_view)>& say) {
  RETURN_IF_FAILED(look_for_fleet(shards));
  if (!state_.metadata()) {
    RETURN_IF_FAILED(refuse_used_logs(beginning.id));
    RETURN_IF_FAILED(make_topics(shards, one_copy, say));
    // A broker that had not heard of a new fleet would have said that there is none.
    RETURN_IF_FAILED(read_records());
  }
  if (state_.metadata())
    return fail(fmt::format("there is a fleet {} already: choose another name", fleet_));
  RETURN_IF_FAILED(beginning.fill(*connection_));
  RETURN_IF_FAILED(write_metadata({.id = beginning.id,
                                   .name = fleet_,
                                   .shards = shards,
                                   .format = journal::kLogEntryVersion,
                                   .created = now},
                                  say));
  if (state_.metadata()->id != beginning.id)
    return fail(fmt::format("somebody else has created fleet {} meanwhile", fleet_));
  return {};
}

Status FleetAdmin::refuse_used_logs(std::uint64_t id) {
  return for_each_log([&](ShardIndex shard) {
    // What each of them brings is not known yet: who fills it looks again.
    return refuse_used_log(
        *connection_,
        {.partition = log_partition(fleet_, shard), .fleet = id, .shard = shard, .node = 0},
        Position(std::numeric_limits<std::uint64_t>::max()));
  });
}

Status FleetAdmin::for_each_log(const std::function<Status(ShardIndex)>& refuse) {
  const auto partitions = kafka::KafkaAdmin(*connection_).partitions_of(log_topic(fleet_));
  if (!partitions) return std::unexpected(partitions.error());
  for (int i = 0; i < partitions->value_or(0); ++i)
    RETURN_IF_FAILED(refuse(ShardIndex(static_cast<std::uint32_t>(i))));
  return {};
}

Status FleetAdmin::write_metadata(const fleet::FleetMetadata& metadata,
                                  const std::function<void(std::string_view)>& say) {
  RETURN_IF_FAILED(append(metadata));
  RETURN_IF_FAILED(read_records());
  RETURN_IF_FAILED(watch(kPatience, [this] { return state_.metadata().has_value(); }));
  if (!state_.metadata()) return fail("Kafka does not return the record that created the fleet");
  // Of two that found it at the same time, the first counts.
  if (state_.metadata()->shards != metadata.shards)
    return wrong_shards(fleet_, state_.metadata()->shards, metadata.shards);
  say(fmt::format("fleet {} created, with {} shards", fleet_, metadata.shards));
  return {};
}

Status FleetAdmin::make_topics(std::uint32_t shards, bool one_copy,
                               const std::function<void(std::string_view)>& say) {
  struct Wanted {
    std::string name;
    int partitions;
    kafka::TopicUse use;
  };
  const Wanted topics[] = {
      {log_topic(fleet_), static_cast<int>(shards), kafka::TopicUse::kLogs},
      {control_topic(fleet_), 1, kafka::TopicUse::kControl},
  };
  kafka::KafkaAdmin admin(*connection_);
  std::vector<bool> exists;
  for (const Wanted& topic : topics) {
    const auto partitions = admin.partitions_of(topic.name);
    if (!partitions) return std::unexpected(partitions.error());
    if (*partitions && **partitions != topic.partitions)
      return fail(fmt::format("topic {} exists and has {} partitions instead of {}", topic.name,
                              **partitions, topic.partitions));
    exists.push_back(partitions->has_value());
  }
  for (std::size_t i = 0; i < std::size(topics); ++i) {
    const Wanted& topic = topics[i];
    if (!exists[i])
      RETURN_IF_FAILED(admin.create_topic(topic.name, topic.partitions, one_copy, topic.use));
    const auto warnings = admin.verify_topic(topic.name, topic.partitions, one_copy, topic.use);
    if (!warnings) return std::unexpected(warnings.error());
    say(fmt::format("topic {}: {}, {} partition{}", topic.name,
                    exists[i] ? "exists already" : "made", topic.partitions,
                    topic.partitions == 1 ? "" : "s"));
    // Those of the brokers are the same for both.
    if (i == 0)
      for (const std::string& warning : *warnings) say("warning: " + warning);
  }
  return {};
}

Status FleetAdmin::read() {
  const auto founded = is_founded();
  if (!founded) return std::unexpected(founded.error());
  if (*founded) return {};
  return fail(fmt::format("there is no fleet {} at {}; stanchion fleet init --name {} creates one",
                          fleet_, connection_->settings().brokers, fleet_));
}

Result<bool> FleetAdmin::is_founded() {
  const auto control = kafka::KafkaAdmin(*connection_).partitions_of(control_topic(fleet_));
  if (!control) return std::unexpected(control.error());
  if (!*control) return false;
  RETURN_IF_FAILED(read_records());
  return state_.metadata().has_value();
}

Status FleetAdmin::read_records() {
  if (!reader_) {
    auto opened = ControlReader::open(*control_connection_, fleet_);
    if (!opened) return std::unexpected(opened.error());
    reader_ = std::move(*opened);
  }
  RETURN_IF_FAILED(watch(kPatience, [this] { return reader_->has_caught_up(); }));
  if (!reader_->has_caught_up())
    return fail(fmt::format("Kafka does not return the control log of fleet {}: {}", fleet_,
                            control_connection_->last_error()));
  live_ = true;
  return {};
}

Status FleetAdmin::watch(std::chrono::milliseconds time, const std::function<bool()>& enough) {
  const auto deadline = Clock::now() + time;
  while (!enough() && Clock::now() < deadline) {
    const auto entry = reader_->next(kStep);
    if (!entry) return std::unexpected(entry.error());
    if (*entry) take(**entry);
  }
  return {};
}

Status FleetAdmin::listen() {
  heard_.clear();
  return watch(kListening, [this] { return heard_.size() >= state_.nodes().size(); });
}

void FleetAdmin::take(const ControlReader::Entry& entry) {
  state_.apply(entry.record, SteadyInstant(entry.appended.time_since_epoch()));
  if (const auto* beat = std::get_if<fleet::Beat>(&entry.record)) {
    last_beats_[beat->node] = entry.appended;
    if (live_) heard_[beat->node] = entry.appended;
  } else if (const auto* forget = std::get_if<fleet::Forget>(&entry.record)) {
    last_beats_.erase(forget->node);
    heard_.erase(forget->node);
  }
}

Status FleetAdmin::append(const fleet::ControlRecord& record) {
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<kafka::Delivery> delivery;
  };
  // Shared, because the report may come after the patience has ended.
  const auto outcome = std::make_shared<Outcome>();
  RETURN_IF_FAILED(connection_->send(
      control_partition(fleet_), fleet::encode_control(record),
      [outcome](const kafka::Delivery& delivery) {
        const std::lock_guard lock(outcome->mutex);
        outcome->delivery = delivery;
        outcome->changed.notify_all();
      },
      fleet::control_key(record)));
  std::unique_lock lock(outcome->mutex);
  if (!outcome->changed.wait_for(lock, kPatience, [&] { return outcome->delivery.has_value(); }))
    return fail("Kafka has not acknowledged the request, which may still take effect: " +
                connection_->last_error());
  if (outcome->delivery->failure) return std::unexpected(*outcome->delivery->failure);
  return {};
}

std::vector<std::optional<LogSize>> FleetAdmin::log_sizes() {
  std::vector<std::optional<LogSize>> sizes(metadata().shards);
  const auto deadline = Clock::now() + kSizesPatience;
  const auto is_missing = [](const auto& size) { return !size; };
  // All are asked for once before any is asked again: a log without a leader must not hide others.
  do {
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] || Clock::now() >= deadline) continue;
      const auto range = connection_->range_of(log_partition(fleet_, ShardIndex(i)), kSizePatience);
      if (range) sizes[i] = {range->first, range->end};
    }
  } while (std::ranges::any_of(sizes, is_missing) && Clock::now() < deadline);
  return sizes;
}

}  // namespace stanchion::fleet_admin

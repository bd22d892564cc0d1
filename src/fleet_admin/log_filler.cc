#include "fleet_admin/log_filler.h"

#include <fmt/format.h>

#include <chrono>

#include "fleet_admin/used_log.h"
#include "kafka/follower.h"

namespace stanchion::fleet_admin {
namespace {

using journal::LogEntryKind;
using journal::LogOffset;

constexpr journal::Epoch kFirstEpoch(1);
constexpr std::size_t kUnderWayMax = 8;
constexpr std::chrono::seconds kPatience(60);
constexpr std::chrono::seconds kStep(1);

}  // namespace

Status LogFiller::claim(Position next, Position last) {
  last_ = last;
  RETURN_IF_FAILED(refuse_used_log(connection_, log_, last_));
  RETURN_IF_FAILED(send(LogEntryKind::kClaim, next));
  return wait_for(0);
}

Status LogFiller::add(Position position, std::string_view record) {
  if (!entry_.fits(record.size())) RETURN_IF_FAILED(send(LogEntryKind::kRecords, first_));
  if (entry_.record_count() == 0) {
    first_ = position;
    before_ = digest_;
  }
  entry_.add(record);
  digest_ = journal::extended(digest_, record);
  ++records_;
  return {};
}

Status LogFiller::finish() {
  if (entry_.record_count() > 0) RETURN_IF_FAILED(send(LogEntryKind::kRecords, first_));
  RETURN_IF_FAILED(wait_for(0));
  // Entries do not change, so from now on nothing else can stand before the claim.
  RETURN_IF_FAILED(refuse_used_log(connection_, log_, last_, *outcome_->claim));
  const LogOffset begin = outcome_->claim->next();
  connection_.delete_before(log_.partition, begin);
  return verify(begin);
}

Status LogFiller::send(LogEntryKind kind, Position first) {
  RETURN_IF_FAILED(wait_for(kUnderWayMax - 1));
  {
    const std::lock_guard lock(outcome_->mutex);
    ++outcome_->under_way;
  }
  return connection_.send(
      log_.partition,
      entry_.finish(
          kind, kFirstEpoch, first, before_,
          {.fleet = log_.fleet, .shard = log_.shard, .node = log_.node, .writer = writer_}),
      [outcome = outcome_, kind](const kafka::Delivery& delivery) {
        const std::lock_guard lock(outcome->mutex);
        --outcome->under_way;
        if (delivery.failure) outcome->failure = *delivery.failure;
        if (kind == LogEntryKind::kClaim) outcome->claim = delivery.at;
        outcome->changed.notify_all();
      });
}

Status LogFiller::wait_for(std::size_t under_way) {
  std::unique_lock lock(outcome_->mutex);
  const bool in_time = outcome_->changed.wait_for(
      lock, kPatience, [&] { return outcome_->failure || outcome_->under_way <= under_way; });
  if (outcome_->failure) return std::unexpected(*outcome_->failure);
  if (!in_time) return fail(fmt::format("Kafka does not answer: {}", connection_.last_error()));
  if (under_way == 0 && !outcome_->claim)
    return fail("Kafka did not say where the log begins; run the same command again");
  return {};
}

Status LogFiller::verify(LogOffset begin) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    const auto range = connection_.range_of(log_.partition, kPatience);
    if (!range) return std::unexpected(range.error());
    if (range->first >= begin) break;
    if (std::chrono::steady_clock::now() > deadline)
      return fail(fmt::format("Kafka does not remove the beginning of {}", log_.partition.text()));
  }
  auto follower = kafka::KafkaFollower::open(connection_, log_);
  if (!follower) return std::unexpected(follower.error());
  std::uint64_t found = 0;
  const auto count = [&](Position, std::string_view) -> Status {
    ++found;
    return {};
  };
  // Kafka's client may say that this is the end before it has heard of what was just removed.
  while (found < records_ && std::chrono::steady_clock::now() < deadline) {
    const auto step = (*follower)->step(count, kStep);
    if (!step) return std::unexpected(step.error());
  }
  if (found != records_)
    return fail(fmt::format("{} has {} of {} records; run the same command again",
                            log_.partition.text(), found, records_));
  return {};
}

}  // namespace stanchion::fleet_admin

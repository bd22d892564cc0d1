#include "monitoring/metrics_page.h"

#include <algorithm>
#include <map>
#include <utility>

#include "service/advice.h"

namespace stanchion::monitoring {
namespace {

using broker::QueueFigures;
using broker::ShardFigures;
using Type = PrometheusText::Type;

Labels labels_of(const QueueRef& queue) {
  return {{"account", queue.account}, {"region", queue.region}, {"queue", queue.name}};
}

}  // namespace

// Names the families of queues, and writes all others.
class MetricsPage::Writer {
 public:
  Writer(const std::vector<ShardFigures>& shards, const ServerFigures& server,
         std::vector<OfQueues>& families)
      : shards_(shards), server_(server), families_(families) {}

  std::string write() {
    write_queues();
    write_left_out();
    write_advice();
    write_calls();
    write_journals();
    write_shards();
    write_connections();
    write_server();
    if (server_.fleet) write_fleet(*server_.fleet);
    write_process();
    return text_.take();
  }

 private:
  void write_queues();
  void write_left_out();
  void write_advice();
  void write_calls();
  void write_journals();
  void write_shards();
  void write_connections();
  void write_server();
  void write_fleet(const FleetFigures& fleet);
  void write_process();

  // A family with one sample without labels.
  template <class Value>
  void single(std::string_view name, Type type, std::string_view help, Value value) {
    text_.family(name, type, help);
    text_.sample({}, value);
  }

  template <class ValueOf>
  void of_queues(std::string_view name, Type type, std::string_view help, ValueOf&& value_of) {
    families_.push_back({name, type, help,
                         [value_of = std::forward<ValueOf>(value_of)](PrometheusText& text,
                                                                      const QueueFigures& queue) {
                           text.sample(labels_of(queue.queue), value_of(queue));
                         }});
  }

  template <class ValueOf>
  void of_shards(std::string_view name, Type type, std::string_view help, ValueOf&& value_of) {
    text_.family(name, type, help);
    for (const ShardFigures& shard : shards_) text_.sample(shard_label(shard), value_of(shard));
  }

  static Labels shard_label(const ShardFigures& shard) {
    return {{"shard", std::to_string(shard.shard.value())}};
  }

  const std::vector<ShardFigures>& shards_;
  const ServerFigures& server_;
  std::vector<OfQueues>& families_;
  PrometheusText text_;
};

void MetricsPage::Writer::write_queues() {
  const auto total = [&](std::string_view name, std::string_view help,
                         std::uint64_t Activity::*number) {
    of_queues(name, Type::kCounter, help,
              [number](const QueueFigures& queue) { return queue.activity.*number; });
  };
  total("stanchion_messages_sent_total", "Messages that clients sent.", &Activity::sent);
  total("stanchion_messages_sent_bytes_total",
        "Bytes of the messages that clients sent: bodies and message attributes.",
        &Activity::sent_bytes);
  total("stanchion_messages_received_total", "Messages handed out; a message counts each time.",
        &Activity::received);
  total("stanchion_messages_deleted_total", "Messages that clients deleted.", &Activity::deleted);
  // Not in the same number: it restarts at 0, and Prometheus takes any decrease for a restart at 0.
  total("stanchion_repeated_deletes_total",
        "Successful deletes of messages that no longer existed.", &Activity::deleted_again);
  total("stanchion_empty_receives_total", "Receives that were answered without a message.",
        &Activity::empty_receives);
  total("stanchion_messages_deduplicated_total",
        "Sends to FIFO queues that repeated an earlier one and were dropped.",
        &Activity::deduplicated);
  total("stanchion_messages_dead_lettered_total",
        "Messages that were moved to the dead-letter queue of this queue.",
        &Activity::dead_lettered);
  total("stanchion_messages_moved_away_total", "Messages that move tasks took out of this queue.",
        &Activity::moved_away);
  total("stanchion_messages_moved_here_total",
        "Messages that came into this queue as dead letters or by move tasks.",
        &Activity::moved_here);
  total("stanchion_messages_expired_total", "Messages whose retention period ended.",
        &Activity::expired);
  const auto count = [&](std::string_view name, std::string_view help,
                         std::size_t engine::Counts::*of) {
    of_queues(name, Type::kGauge, help, [of](const QueueFigures& queue) {
      return static_cast<std::uint64_t>(queue.counts.*of);
    });
  };
  count("stanchion_messages_visible", "Messages that can be received.", &engine::Counts::visible);
  count("stanchion_messages_in_flight", "Messages that were received and not deleted yet.",
        &engine::Counts::in_flight);
  count("stanchion_messages_delayed", "Messages whose delay is not over.",
        &engine::Counts::delayed);
  of_queues("stanchion_oldest_message_age_seconds", Type::kGauge,
            "How long the oldest message has been in the queue; 0 if there is none.",
            [](const QueueFigures& queue) {
              return static_cast<double>(queue.oldest_age.value_or(Duration(0)).count()) / 1e3;
            });
  of_queues("stanchion_noisy_groups", Type::kGauge,
            "Message groups of a standard queue that keep its consumers busy.",
            [](const QueueFigures& queue) { return std::uint64_t{queue.noisy_groups}; });
  // A family of its own and not a label of the others: those would begin anew when it changes.
  text_.family("stanchion_dead_letter_queue", Type::kGauge,
               "1 for each queue that a redrive policy names as a dead-letter queue.");
  for (const QueueRef& queue : server_.dead_letter_queues)
    text_.sample(labels_of(queue), std::uint64_t{1});
}

void MetricsPage::Writer::write_left_out() {
  std::map<std::string, std::uint64_t> left_out;
  for (const ShardFigures& shard : shards_)
    for (const auto& [account, count] : shard.left_out) left_out[account] += count;
  text_.family("stanchion_queues_left_out", Type::kGauge,
               "Queues of an account without their own metrics, because it has more than "
               "metrics.queues_per_account.");
  for (const auto& [account, count] : left_out) text_.sample({{"account", account}}, count);
  text_.family("stanchion_dead_letter_queues_left_out", Type::kGauge,
               "Dead-letter queues of an account that are not marked as such, because it has more "
               "than metrics.queues_per_account.");
  for (const auto& [account, count] : server_.dead_letter_queues_left_out)
    text_.sample({{"account", account}}, count);
}

void MetricsPage::Writer::write_advice() {
  text_.family("stanchion_advice", Type::kGauge,
               "1 for each advice that stanchion advise gives now, by its kind.");
  const service::Advised advised = service::kinds_of_advice(shards_);
  for (const service::Advice& advice : advised.advice)
    text_.sample({{"account", advice.queue.account},
                  {"region", advice.queue.region},
                  {"queue", advice.queue.name},
                  {"kind", advice.kind}},
                 std::uint64_t{1});
  text_.family("stanchion_advice_left_out", Type::kGauge,
               "Pieces of advice that have no sample of their own, because there are too many.");
  text_.sample({}, std::uint64_t{advised.left_out});
}

void MetricsPage::Writer::write_calls() {
  text_.family("stanchion_request_errors_total", Type::kCounter,
               "Calls that were answered with an error, by its code.");
  for (std::size_t row = 0; row < service::CallFigures::kRows; ++row) {
    std::map<std::string_view, std::uint64_t> by_code;  // Some errors have one code.
    for (std::size_t code = 0; code < kErrorCount; ++code)
      if (const std::uint64_t n = server_.calls[row].errors[code]; n > 0)
        by_code[info_of(static_cast<ErrorCode>(code)).query_code] += n;
    for (const auto& [code, n] : by_code)
      text_.sample({{"action", service::CallFigures::name_of_row(row)}, {"code", code}}, n);
  }
  text_.family("stanchion_request_duration_seconds", Type::kHistogram,
               "Time from the end of a request to its answer, waiting for messages included.");
  for (std::size_t row = 0; row < service::CallFigures::kRows; ++row) {
    const LatencyCounts& took = server_.calls[row].took;
    if (std::ranges::all_of(took.buckets, [](std::uint64_t n) { return n == 0; })) continue;
    text_.histogram({{"action", service::CallFigures::name_of_row(row)}}, took);
  }
}

void MetricsPage::Writer::write_journals() {
  of_shards("stanchion_journal_commits_total", Type::kCounter, "Commits to the journal.",
            [](const ShardFigures& shard) { return shard.journal.commits; });
  of_shards("stanchion_journal_records_total", Type::kCounter,
            "Records that were committed; several share a commit.",
            [](const ShardFigures& shard) { return shard.journal.records; });
  of_shards("stanchion_journal_written_bytes_total", Type::kCounter,
            "Bytes written to the journal.",
            [](const ShardFigures& shard) { return shard.journal.bytes; });
  text_.family("stanchion_journal_commit_duration_seconds", Type::kHistogram,
               "Time that a commit takes: one write and one sync.");
  for (const ShardFigures& shard : shards_)
    text_.histogram(shard_label(shard), shard.journal.commit_time);
}

void MetricsPage::Writer::write_shards() {
  of_shards("stanchion_checkpoints_total", Type::kCounter, "Checkpoints since the start.",
            [](const ShardFigures& shard) { return shard.checkpoints; });
  of_shards("stanchion_cold_reads_total", Type::kCounter,
            "Reads of messages that were not in memory.",
            [](const ShardFigures& shard) { return shard.cold_reads; });
  of_shards("stanchion_parked_polls", Type::kGauge, "Receives that wait for a message.",
            [](const ShardFigures& shard) { return std::uint64_t{shard.parked_polls}; });
  of_shards("stanchion_requests_waiting", Type::kGauge,
            "Calls that wait for the store or for memory.",
            [](const ShardFigures& shard) { return std::uint64_t{shard.requests_waiting}; });
  of_shards("stanchion_queues", Type::kGauge, "Queues.",
            [](const ShardFigures& shard) { return std::uint64_t{shard.queue_count}; });
  of_shards("stanchion_disk_full", Type::kGauge,
            "1 while sends are refused because the disk is full.",
            [](const ShardFigures& shard) { return std::uint64_t{shard.disk_is_full}; });
}

void MetricsPage::Writer::write_connections() {
  const net::HttpStats& http = server_.http;
  single("stanchion_connections", Type::kGauge, "Open connections.", http.open);
  single("stanchion_connections_accepted_total", Type::kCounter,
         "Accepted connections, including those refused afterwards.", http.accepted);
  single("stanchion_connections_refused_total", Type::kCounter,
         "Connections refused because there were too many or, with TLS, because memory was short.",
         http.refused);
  single("stanchion_connections_shed_total", Type::kCounter,
         "Connections and requests dropped to free memory.", http.shed);
  single("stanchion_http_requests_total", Type::kCounter, "Requests that were taken.",
         http.requests);
  single("stanchion_http_bad_requests_total", Type::kCounter,
         "Requests answered with 4xx or 5xx before their action was looked at.", http.bad_requests);
  single("stanchion_http_timeouts_total", Type::kCounter,
         "Requests that did not arrive in time, and connections that were idle for too long.",
         http.timeouts);
}

void MetricsPage::Writer::write_server() {
  std::uint64_t messages = 0, structure = 0;
  for (const ShardFigures& shard : shards_) {
    messages += shard.message_bytes;
    structure += shard.structure_bytes;
  }
  text_.family("stanchion_memory_bytes", Type::kGauge,
               "Memory by its use: messages, queues and their structures, requests and answers.");
  text_.sample({{"owner", "messages"}}, messages);
  text_.sample({{"owner", "queues"}}, structure);
  text_.sample({{"owner", "connections"}}, server_.http.held_bytes);
  text_.family("stanchion_memory_limit_bytes", Type::kGauge,
               "Budgets of memory: server.memory for messages and queues, limits.memory for "
               "connections.");
  text_.sample({{"owner", "messages"}}, server_.memory_budget);
  text_.sample({{"owner", "connections"}}, server_.held_budget);
  single("stanchion_damaged_queues", Type::kGauge,
         "Queues that are set aside because messages of them cannot be read.",
         std::uint64_t{server_.damaged_queues.size()});
  single("stanchion_clock_ahead_seconds", Type::kGauge,
         "How far the server's time is ahead of the wall clock.",
         static_cast<double>(server_.ahead_of_wall_clock.count()) / 1e3);
  text_.family("stanchion_build_info", Type::kGauge, "1, with the version as a label.");
  text_.sample({{"version", server_.version}}, std::uint64_t{1});
}

void MetricsPage::Writer::write_fleet(const FleetFigures& fleet) {
  single("stanchion_fleet_nodes_alive", Type::kGauge, "Live nodes of the fleet.",
         fleet.nodes_alive);
  single("stanchion_fleet_in_touch", Type::kGauge,
         "Whether this node reads its own writes to the control log; what it says of other nodes "
         "counts only then.",
         std::uint64_t{fleet.in_touch});
  single("stanchion_fleet_shards_served", Type::kGauge, "Shards that this node serves.",
         fleet.shards_served);
  single("stanchion_fleet_shards_without_owner", Type::kGauge,
         "Shards whose owner is not alive or cannot serve them, or that have no owner.",
         fleet.shards_without_owner);
  single("stanchion_fleet_shards_given_up", Type::kGauge,
         "Shards that this node should follow or serve but cannot.", fleet.shards_given_up);
  single("stanchion_fleet_shards_stalled", Type::kGauge,
         "Shards that this node owns and whose logs Kafka has not let it write for 5 s or longer.",
         fleet.shards_stalled);
  const auto seconds_by_shard = [this](std::string_view name, std::string_view help,
                                       const std::map<ShardIndex, Duration>& values) {
    text_.family(name, Type::kGauge, help);
    for (const auto& [shard, value] : values)
      text_.sample({{"shard", std::to_string(shard.value())}},
                   static_cast<double>(value.count()) / 1e3);
  };
  seconds_by_shard("stanchion_fleet_replica_lag_seconds",
                   "How far this node is behind the log of a shard that it follows.", fleet.lags);
  seconds_by_shard("stanchion_fleet_promotion_seconds",
                   "How long it took from the claim of a shard until this node served it.",
                   fleet.promotion_times);
  single("stanchion_fleet_claims_total", Type::kCounter, "Claims of shards that this node made.",
         fleet.claims);
  single("stanchion_fleet_promotions_total", Type::kCounter,
         "Shards that this node began to serve.", fleet.promotions);
  single("stanchion_fleet_losses_total", Type::kCounter,
         "Shards that this node stopped serving, by plan or because another one had claimed them.",
         fleet.losses);
  single("stanchion_fleet_store_copies_total", Type::kCounter,
         "Stores that this node copied from others.", fleet.copies);
  single("stanchion_fleet_forwarded_total", Type::kCounter,
         "Requests that this node forwarded to the owners of their shards.", fleet.forwarded);
  single("stanchion_fleet_held_total", Type::kCounter,
         "Requests that waited here for an owner of their shard.", fleet.held);
  single("stanchion_fleet_given_up_total", Type::kCounter,
         "Requests that were refused because their shard had no owner for too long.",
         fleet.given_up);
  single("stanchion_fleet_unknown_total", Type::kCounter,
         "Requests whose owner was lost before it answered.", fleet.unknown);
}

// Under the names that client libraries of Prometheus use.
void MetricsPage::Writer::write_process() {
  const ProcessFigures& process = server_.process;
  single("process_start_time_seconds", Type::kGauge, "When the process began, since 1970.",
         process.started);
  single("process_cpu_seconds_total", Type::kCounter, "Processor time of all threads.",
         process.cpu_seconds);
  single("process_resident_memory_bytes", Type::kGauge, "Resident memory.", process.resident_bytes);
  single("process_virtual_memory_bytes", Type::kGauge, "Virtual memory.", process.virtual_bytes);
  single("process_open_fds", Type::kGauge, "Open file descriptors.", process.open_files);
  single("process_max_fds", Type::kGauge, "Limit of open file descriptors.",
         process.open_files_max);
}

void keep_first_queues(std::vector<ShardFigures>& shards, std::size_t per_account_max) {
  std::map<std::string_view, std::vector<const QueueRef*>> by_account;
  for (const ShardFigures& shard : shards)
    for (const QueueFigures& queue : shard.queues)
      by_account[queue.queue.account].push_back(&queue.queue);
  std::map<std::string, QueueRef> first_left_out;
  for (auto& [account, queues] : by_account) {
    if (queues.size() <= per_account_max) continue;
    const auto at = queues.begin() + static_cast<std::ptrdiff_t>(per_account_max);
    std::ranges::nth_element(queues, at,
                             [](const QueueRef* a, const QueueRef* b) { return *a < *b; });
    first_left_out.emplace(account, **at);
  }
  if (first_left_out.empty()) return;
  for (ShardFigures& shard : shards)
    std::erase_if(shard.queues, [&](const QueueFigures& queue) {
      const auto limit = first_left_out.find(queue.queue.account);
      if (limit == first_left_out.end() || queue.queue < limit->second) return false;
      ++shard.left_out[queue.queue.account];
      return true;
    });
}

std::map<std::string, std::uint64_t> keep_first_dead_letter_queues(std::vector<QueueRef>& queues,
                                                                   std::size_t per_account_max) {
  std::ranges::sort(queues);  // By account first.
  std::map<std::string, std::uint64_t> left_out;
  std::vector<QueueRef> kept;
  std::size_t of_account = 0;
  for (QueueRef& queue : queues) {
    if (kept.empty() || kept.back().account != queue.account) of_account = 0;
    if (++of_account > per_account_max)
      ++left_out[queue.account];
    else
      kept.push_back(std::move(queue));
  }
  queues = std::move(kept);
  return left_out;
}

MetricsPage::MetricsPage(std::vector<ShardFigures> shards, const ServerFigures& server)
    : shards_(std::move(shards)) {
  rest_ = Writer(shards_, server, of_queues_).write();
}

bool MetricsPage::append_part(Place& place, std::string& out) const {
  PrometheusText text;
  while (place.family < of_queues_.size()) {
    append_queues(place, text);
    if (text.size() >= kPartBytes) break;
  }
  out += text.take();
  if (place.family < of_queues_.size()) return true;
  // The rest, too, is cut at ends of lines only.
  if (out.size() < kPartBytes) {
    const std::size_t full = place.in_rest + (kPartBytes - out.size());
    const std::size_t line = full < rest_.size() ? rest_.find('\n', full) : std::string::npos;
    const std::size_t end = line == std::string::npos ? rest_.size() : line + 1;
    out.append(rest_, place.in_rest, end - place.in_rest);
    place.in_rest = end;
  }
  return place.in_rest < rest_.size();
}

// Goes on with the family of the place until the part is full or the family ends.
void MetricsPage::append_queues(Place& place, PrometheusText& text) const {
  const OfQueues& family = of_queues_[place.family];
  const bool begins = place.shard == 0 && place.queue == 0;
  if (begins)
    text.family(family.name, family.type, family.help);
  else
    text.go_on_with(family.name);
  for (; place.shard < shards_.size(); ++place.shard, place.queue = 0) {
    const std::vector<QueueFigures>& queues = shards_[place.shard].queues;
    while (place.queue < queues.size()) {
      family.write(text, queues[place.queue++]);
      if (text.size() >= kPartBytes) return;
    }
  }
  ++place.family;
  place.shard = place.queue = 0;
}

}  // namespace stanchion::monitoring

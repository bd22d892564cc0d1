#include "console/server_page.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/latency.h"

namespace stanchion::console {
namespace {

namespace json = boost::json;
using broker::ShardFigures;

// More at once are refused: each holds a connection.
constexpr std::size_t kWaitingMax = 64;

std::string bytes(std::uint64_t count) {
  constexpr std::uint64_t kKib = 1024;
  if (count < kKib) return fmt::format("{} B", count);
  if (count < kKib * kKib)
    return fmt::format("{:.1f} KiB", static_cast<double>(count) / static_cast<double>(kKib));
  const double mebibytes = static_cast<double>(count) / static_cast<double>(kKib * kKib);
  if (mebibytes < 1024) return fmt::format("{:.1f} MiB", mebibytes);
  return fmt::format("{:.1f} GiB", mebibytes / 1024);
}

std::string bytes_of(std::uint64_t used, std::uint64_t budget) {
  return fmt::format("{} of {}", bytes(used), bytes(budget));
}

std::string number(std::uint64_t count) {
  return fmt::format("{}", count);
}

std::string how_long(std::chrono::seconds time) {
  const auto days = std::chrono::duration_cast<std::chrono::days>(time);
  const auto hours = std::chrono::duration_cast<std::chrono::hours>(time - days);
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time - days - hours);
  if (days.count() > 0) return fmt::format("{} d {} h", days.count(), hours.count());
  if (hours.count() > 0) return fmt::format("{} h {} min", hours.count(), minutes.count());
  if (minutes.count() > 0)
    return fmt::format("{} min {} s", minutes.count(), (time - minutes).count());
  return fmt::format("{} s", time.count());
}

// The bound below which this part of all lies.
std::string below(const LatencyCounts& counts, double part) {
  std::uint64_t all = 0;
  for (const std::uint64_t one : counts.buckets) all += one;
  if (all == 0) return "–";
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < LatencyCounts::kBounds.size(); ++i) {
    seen += counts.buckets[i];
    if (static_cast<double>(seen) >= part * static_cast<double>(all))
      return fmt::format("below {} ms", static_cast<double>(LatencyCounts::kBounds[i]) / 1e3);
  }
  return fmt::format("above {} s", LatencyCounts::kBounds.back() / 1'000'000);
}

// The figures of all shards together.
ShardFigures sum_of(const std::vector<ShardFigures>& shards) {
  ShardFigures sum;
  for (const ShardFigures& shard : shards) {
    sum.queue_count += shard.queue_count;
    sum.journal.commits += shard.journal.commits;
    sum.journal.records += shard.journal.records;
    sum.journal.bytes += shard.journal.bytes;
    sum.journal.commit_time += shard.journal.commit_time;
    sum.disk_is_full = sum.disk_is_full || shard.disk_is_full;
    sum.checkpoints += shard.checkpoints;
    sum.cold_reads += shard.cold_reads;
    sum.message_bytes += shard.message_bytes;
    sum.structure_bytes += shard.structure_bytes;
    sum.parked_polls += shard.parked_polls;
    sum.requests_waiting += shard.requests_waiting;
  }
  return sum;
}

std::string list_damaged(const std::vector<std::string>& arns, const std::string& account) {
  if (arns.empty()) return "none";
  std::string own;
  for (const std::string& arn : arns)
    if (account.empty() || arn.find(":" + account + ":") != std::string::npos)
      own += (own.empty() ? ": " : ", ") + arn;
  return number(arns.size()) + own;
}

std::string health_of(const ShardFigures& all, const monitoring::ServerFigures& server) {
  if (all.disk_is_full) return "The disk is full: sends are refused until there is space.";
  if (!server.damaged_queues.empty())
    return "Some queues are set aside, because messages of them cannot be read.";
  return "well";
}

ServerSection about_server(const ShardFigures& all, std::size_t shards,
                           const monitoring::ServerFigures& server,
                           std::chrono::system_clock::time_point now) {
  const std::chrono::system_clock::time_point started{
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::duration<double>(server.process.started))};
  const auto up =
      std::chrono::duration_cast<std::chrono::seconds>(std::max(now, started) - started);
  return {
      "Server",
      {{"Version", std::string(server.version), ""},
       {"Compiler", "GCC " __VERSION__, ""},
       {"Health", health_of(all, server), "Details are in GET /health/ready and the log."},
       {"Started",
        fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", std::chrono::floor<std::chrono::seconds>(started)),
        ""},
       {"Up for", how_long(up), ""},
       {"Ahead of the wall clock",
        fmt::format("{:.3f} s", static_cast<double>(server.ahead_of_wall_clock.count()) / 1e3),
        "The server's time never goes back, so it is ahead after the clock was set back, or after "
        "a move by virtual_time."},
       {"Queues", number(all.queue_count), "Of all accounts."},
       {"Shards", number(shards), "Each shard serves its queues independently."},
       {"Processor time", fmt::format("{:.1f} s", server.process.cpu_seconds), ""},
       {"Open files",
        fmt::format("{} of {}", server.process.open_files, server.process.open_files_max),
        "Including connections, journal segments and store tables."}}};
}

ServerSection about_journal(const journal::JournalFigures& journal) {
  const double records = journal.commits == 0 ? 0
                                              : static_cast<double>(journal.records) /
                                                    static_cast<double>(journal.commits);
  return {
      "Journal",
      {{"Commits", number(journal.commits), "Since the start; each is one write and one sync."},
       {"Records", number(journal.records), ""},
       {"Records a commit", fmt::format("{:.1f}", records),
        "With more concurrent clients, more records share a sync."},
       {"Written", bytes(journal.bytes), ""},
       {"Half of the commits", below(journal.commit_time, 0.5), ""},
       {"99 % of the commits", below(journal.commit_time, 0.99), "A slow disk shows here first."}}};
}

ServerSection about_store(const ShardFigures& all, const monitoring::ServerFigures& server,
                          const std::string& account) {
  return {"Disk",
          {{"Checkpoints", number(all.checkpoints), "Move changes from the journal to the store."},
           {"Cold reads", number(all.cold_reads), "Reads of messages that were not in memory."},
           {"Full", all.disk_is_full ? "yes: sends are refused" : "no", ""},
           {"Damaged queues", list_damaged(server.damaged_queues, account),
            "Set aside until they are repaired, purged or deleted, or a backup is restored."}}};
}

ServerSection about_memory(const ShardFigures& all, const monitoring::ServerFigures& server) {
  return {"Memory",
          {{"Messages and queues",
            bytes_of(all.message_bytes + all.structure_bytes, server.memory_budget),
            "server.memory is the limit; messages beyond half of it wait in the store."},
           {"Of it, messages", bytes(all.message_bytes), ""},
           {"Of it, queues and groups", bytes(all.structure_bytes), ""},
           {"Requests and answers", bytes_of(server.http.held_bytes, server.held_budget),
            "limits.memory is the limit; near it, slow clients are dropped."},
           {"Process", bytes(server.process.resident_bytes), "Resident memory."}}};
}

ServerSection about_connections(const ShardFigures& all, const net::HttpStats& http) {
  return {
      "Connections",
      {{"Open", number(http.open), ""},
       {"Accepted", number(http.accepted), "Since the start, like the next five."},
       {"Refused", number(http.refused), "Because there were too many."},
       {"Given up", number(http.shed), "To free memory."},
       {"Requests", number(http.requests), ""},
       {"Bad requests", number(http.bad_requests), "Answered before their action was looked at."},
       {"Timeouts", number(http.timeouts), "Clients that were too slow, or idle."},
       {"Parked polls", number(all.parked_polls), "Receives that wait for a message."},
       {"Calls that wait", number(all.requests_waiting), "For the store or for memory."}}};
}

std::string to_json(const std::vector<ServerSection>& sections) {
  json::array all;
  for (const ServerSection& section : sections) {
    json::array rows;
    for (const ServerRow& row : section.rows)
      rows.push_back(json::object{{"name", row.name}, {"value", row.value}, {"help", row.help}});
    all.push_back(json::object{{"title", section.title}, {"rows", std::move(rows)}});
  }
  return json::serialize(json::object{{"sections", std::move(all)}});
}

net::HttpResponse json_response(int status, std::string body) {
  net::HttpResponse response(status, std::move(body));
  response.add_plain_header("Content-Type", "application/json");
  response.add_plain_header("Cache-Control", "no-store");
  return response;
}

}  // namespace

std::vector<ServerSection> describe_server(const std::vector<ShardFigures>& shards,
                                           const monitoring::ServerFigures& server,
                                           std::chrono::system_clock::time_point now,
                                           const std::string& account) {
  const ShardFigures all = sum_of(shards);
  return {about_server(all, shards.size(), server, now), about_journal(all.journal),
          about_store(all, server, account), about_memory(all, server),
          about_connections(all, server.http)};
}

ServerPage::ServerPage(broker::Broker& broker, broker::Background& background,
                       std::vector<std::unique_ptr<service::ReactorLoop>>& loops, LookAtServer look,
                       std::vector<ServerRow> settings)
    : broker_(broker),
      background_(background),
      loops_(loops),
      look_(std::move(look)),
      settings_(std::move(settings)) {}

void ServerPage::answer(net::Exchange exchange, std::string account) {
  if (waiting_.fetch_add(1) >= kWaitingMax) {
    --waiting_;
    return exchange.answer(json_response(
        503, R"({"message":"Too many requests for this page at the same time; try again."})"));
  }
  service::ReactorLoop& loop = *loops_[exchange.reactor().index()];
  broker_.collect(
      loop, {.purpose = broker::Purpose::kServer},
      [this, &loop, exchange = std::move(exchange),
       account = std::move(account)](broker::Figures figures) mutable {
        background_.run(broker::Work::kReport, [this, &loop, exchange = std::move(exchange),
                                                account = std::move(account),
                                                figures = std::move(figures)]() mutable {
          auto sections =
              describe_server(figures.shards, look_(), std::chrono::system_clock::now(), account);
          if (account.empty()) sections.push_back({"Settings", settings_});
          loop.post([this, exchange = std::move(exchange), body = to_json(sections)]() mutable {
            --waiting_;
            exchange.answer(json_response(200, std::move(body)));
          });
        });
      });
}

}  // namespace stanchion::console

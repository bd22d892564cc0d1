#include "fleet_admin/rebuild_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "broker/routing.h"

namespace stanchion::fleet_admin {
namespace {

enum class Relation {
  kApart,    // The log begins behind the record that is next for the store.
  kGoesOn,   // The log goes on where the store ends.
  kDiffers,  // It has other records before that.
  kAhead,    // The store has more than the log.
};

Relation relation(const FoundStore& store, const FoundLog& log) {
  if (store.checkpoint.next() < log.first) return Relation::kApart;
  if (store.checkpoint > log.last) return Relation::kAhead;
  const auto digest = log.digests.find(store.checkpoint);
  const bool differs =
      store.digest && digest != log.digests.end() && *store.digest != digest->second;
  return differs ? Relation::kDiffers : Relation::kGoesOn;
}

// RB1, among the stores.
Status refuse_two_pasts(const std::vector<FoundStore>& stores) {
  for (const FoundStore& one : stores)
    for (const FoundStore& other : stores)
      if (one.checkpoint == other.checkpoint && one.digest && other.digest &&
          *one.digest != *other.digest)
        return fail(fmt::format(
            "{} and {} both have the records up to {}, but not the same ones: name only the "
            "directories whose messages count",
            one.directory, other.directory, one.checkpoint.value()));
  return {};
}

}  // namespace

Result<ShardPlan> plan_shard(const std::vector<FoundStore>& stores,
                             const std::optional<FoundLog>& log) {
  CHECK(!stores.empty(), "a shard is made of a store");
  RETURN_IF_FAILED(refuse_two_pasts(stores));
  ShardPlan plan;
  Position reached;
  for (std::size_t i = 0; i < stores.size(); ++i) {
    const FoundStore& store = stores[i];
    const Relation found = log ? relation(store, *log) : Relation::kAhead;
    if (found == Relation::kDiffers)
      return fail(fmt::format(
          "{} has the records up to {}, and the old log has other ones up to there: leave that "
          "directory out, or the log with --without-log",
          store.directory, store.checkpoint.value()));
    const bool goes_on = found == Relation::kGoesOn;
    const Position reaches = goes_on ? log->last : store.checkpoint;
    const bool better =
        std::pair(reaches, store.checkpoint) > std::pair(reached, stores[plan.store].checkpoint);
    if (i > 0 && !better) continue;
    plan = {.store = i, .goes_on = goes_on};
    reached = reaches;
  }
  if (log && reached < log->last)
    return fail(fmt::format(
        "the directories have the records up to {}, and the old log those from {} to {}: name the "
        "directory of another node as well, or leave the log out with --without-log",
        reached.value(), log->first.value(), log->last.value()));
  return plan;
}

TransferBooks books_of(const engine::Engine& engine, std::uint32_t shards) {
  TransferBooks books{.next = engine.next_transfer(), .under_way = {}, .sources = {}};
  engine.for_each_departure([&](TransferNo number, const QueueRef& destination) {
    books.under_way.emplace_back(number, broker::shard_of(destination, shards));
  });
  for (std::uint32_t i = 0; i < shards; ++i) {
    const ShardIndex source(i);
    books.sources[source] = {engine.inbox().settled_below(source), engine.inbox().end(source)};
  }
  return books;
}

TransferMending mend_transfers(ShardIndex shard, const std::vector<TransferBooks>& books) {
  const TransferBooks& own = books[shard.value()];
  TransferMending mending;
  TransferNo end = own.next;
  for (const TransferBooks& other : books) end = std::max(end, other.sources.at(shard).end);
  if (end > own.next) mending.resume_at = end;
  for (const auto& [number, destination] : own.under_way)
    if (number < books[destination.value()].sources.at(shard).settled_below)
      mending.refused.push_back(number);
  return mending;
}

}  // namespace stanchion::fleet_admin

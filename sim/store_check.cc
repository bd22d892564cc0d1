#include "sim/store_check.h"

#include <fmt/format.h>

#include "model/fact.h"
#include "sim/violation.h"

namespace stanchion::sim {

void check_store(const store::Store& store, ShardIndex shard, const engine::MemoryOptions& memory,
                 const std::vector<std::string>& history) {
  const auto scan = [&](const KeyRange& range, const auto& visit) {
    return store.scan(range, visit);
  };
  engine::Engine loaded({shard, false, memory});
  Instant at;
  const auto position = loaded.load(scan, at);
  if (!position) throw Violation("F3: a store cannot be read: " + position.error().message);
  if (*position == Position()) return;
  if (position->value() > history.size()) throw Violation("F3: a store is ahead of its log");
  engine::Engine replayed({shard, false, memory});
  Instant last{};
  for (std::size_t i = 0; i < position->value(); ++i) {
    const auto record = parse_record(history[i]);
    if (!record) throw Violation("F3: a record cannot be read");
    if (record->at < last) throw Violation("F3: time runs back in a log");
    last = record->at;
    replayed.advance(record->at);
    for (const Fact& fact : record->facts) replayed.apply(fact, record->at);
  }
  if (at != last)
    throw Violation(
        fmt::format("F3: a store has the time {}, its records {}", to_millis(at), to_millis(last)));
  replayed.advance(at);
  loaded.advance(at);
  if (loaded.next_deadline() <= at || loaded.stalled()) return;
  const auto found = loaded.fingerprint([&](const KeyRange& range) {
    auto read = engine::Engine::read({.range = range}, scan);
    if (!read) throw Violation("F3: a message in a store cannot be read");
    return std::move(*read);
  });
  if (found != replayed.fingerprint())
    throw Violation(fmt::format("F3: a store is not what {} records say", position->value()));
}

}  // namespace stanchion::sim

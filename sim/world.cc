#include "sim/world.h"

#include <cstdio>

#include "base/digest.h"

namespace stanchion::sim {
namespace {

// When every world begins: some day of 2024.
constexpr std::int64_t kBeginMillis = 1'720'000'000'000;

// Lines that are kept to be shown when a promise is broken.
constexpr std::size_t kLinesKept = 20'000;

}  // namespace

World::World(std::uint64_t seed, bool verbose)
    : random_(seed),
      verbose_(verbose),
      offset_millis_(kBeginMillis),
      last_shown_(from_millis(kBeginMillis)) {}

void World::schedule(Micros delay, Owner owner, What what) {
  CHECK(delay >= 0, "nothing happens in the past");
  events_.emplace(Key{now_ + delay, random_.next(), ++serial_}, Event{owner, std::move(what)});
}

bool World::step() {
  if (events_.empty()) return false;
  auto node = events_.extract(events_.begin());
  now_ = std::get<0>(node.key());
  if (const auto paused = paused_.find(node.mapped().owner); paused != paused_.end()) {
    if (now_ < paused->second) {
      // Behind what waits already.
      node.key() = Key{paused->second, 0, ++serial_};
      events_.insert(std::move(node));
      return true;
    }
    // Those that waited go first; their ties are lower than all others.
    if (std::get<1>(node.key()) != 0) paused_.erase(paused);
  }
  ++events_run_;
  node.mapped().what();
  return true;
}

void World::forget(Owner owner) {
  std::erase_if(events_, [&](const auto& entry) { return entry.second.owner == owner; });
}

void World::suspend(std::int64_t millis) {
  suspended_ += std::chrono::milliseconds(millis);
  offset_millis_ += millis;
}

bool World::is_paused(Owner owner) const {
  const auto found = paused_.find(owner);
  return found != paused_.end() && now_ < found->second;
}

void World::join(const os::Timekeeper* time) {
  high_water_ = high_water();
  times_.push_back(time);
}

void World::leave(const os::Timekeeper* time) {
  high_water_ = high_water();
  last_shown_ = clock();
  std::erase(times_, time);
}

Instant World::clock() const {
  if (times_.empty()) return last_shown_;
  Instant least = Instant::max();
  for (const os::Timekeeper* time : times_) least = std::min(least, time->peek().now);
  return least;
}

Instant World::high_water() const {
  Instant most = std::max(high_water_, clock());
  for (const os::Timekeeper* time : times_) most = std::max(most, time->peek().now);
  return most;
}

void World::mix(std::uint64_t number) {
  hash_ = xxh3_64({reinterpret_cast<const char*>(&number), sizeof number}, hash_);
}

void World::add_line(std::string line) {
  std::string dated = fmt::format("{:>14.6f} {}", static_cast<double>(now_) / kSecond, line);
  hash_ = xxh3_64(dated, hash_);
  if (verbose_) std::puts(dated.c_str());
  lines_.push_back(std::move(dated));
  if (lines_.size() > kLinesKept) lines_.pop_front();
}

}  // namespace stanchion::sim

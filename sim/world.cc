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

void World::follow(const os::Timekeeper* time) {
  high_water_ = high_water();
  last_shown_ = clock();
  time_ = time;
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

// For tests of stores: keys as the engine makes them, batches, and the content of a store.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "os/temporary_directory.h"
#include "store/store.h"

namespace stanchion::store {

using Held = std::map<std::string, std::string>;

// A kind of record, a lane, a number.
inline std::string key_of(char type, std::uint64_t lane, std::uint64_t number) {
  std::string key(1, type);
  for (const std::uint64_t part : {lane, number}) {
    for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(part >> shift));
  }
  return key;
}
inline std::string message(std::uint64_t lane, std::uint64_t number) {
  return key_of('m', lane, number);
}

inline Put put(std::string key, std::string value) {
  return {std::move(key), std::move(value), nullptr};
}

// Messages that do not compress away.
inline Batch messages(std::uint64_t lane, std::uint64_t first, std::uint64_t count) {
  Batch batch;
  std::uint64_t noise = first * 31 + lane + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string value;
    while (value.size() < 200) {
      noise = noise * 6364136223846793005 + 1442695040888963407;
      value.append(reinterpret_cast<const char*>(&noise), sizeof noise);
    }
    batch.puts.push_back(put(message(lane, first + i), value));
  }
  return batch;
}

// The messages first to first + count - 1 of a lane, each with a head of its own.
inline Series series(std::uint64_t lane, std::uint64_t first, std::uint64_t count,
                     std::size_t head_size = 5) {
  Series out{message(lane, first), message(lane, first + count), {}, {}, head_size * count};
  for (std::uint64_t number = first; number < first + count; ++number) {
    std::string head = std::to_string(number);
    head.resize(head_size, '.');
    out.heads += head;
    out.entries.push_back({number, nullptr, static_cast<std::uint32_t>(out.heads.size())});
  }
  return out;
}

inline Held held(const Store& store, const KeyRange& range = {"", "\xff"}) {
  Held entries;
  std::string last;
  const Status status = store.scan(range, [&](std::string_view key, std::string_view value) {
    EXPECT_LT(last, key);
    last = key;
    entries.emplace(key, value);
    return true;
  });
  EXPECT_TRUE(status) << status.error().message;
  return entries;
}

inline void must_commit(Store& store, const Batch& batch) {
  const Status status = store.commit(batch);
  ASSERT_TRUE(status) << status.error().message;
}

// RocksDB removes files on a thread of its own, when it gets to it.
template <class S>
bool shrinks_below(const S& store, std::uint64_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (store.size_on_disk() >= bytes && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return store.size_on_disk() < bytes;
}

class Scratch : public os::TemporaryDirectory {
 public:
  std::string store() const { return path() + "/store"; }
};

}  // namespace stanchion::store

// Any bytes as an entry of the store: a shard, a queue, a chunk, the record of a message, a page of
// deduplication ids, a receive attempt, a departure, a message or a pack of them, a place in line.
// Loading refuses them, or gives an engine whose invariants hold, that executes requests as long as
// the store returns what it needs, and that can be saved and loaded again.
//
// The first byte says which entry of a good store is replaced; the second, if it is not zero, how
// many bytes of the input are its new key; the rest is its value.
#include <iterator>

#include "engine/sample_world.h"
#include "fuzz/fuzz.h"

namespace stanchion::fuzz {
namespace {

struct Good {
  engine::Entries entries;
  Instant now;
};

const Good& good() {
  static const Good good = [] {
    engine::SampleWorld sample;
    return Good{engine::saved_of(sample.world.engine(), sample.world.now()), sample.world.now()};
  }();
  return good;
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> inputs;
  for (const auto& [key, value] : good().entries) {
    const char index = static_cast<char>(inputs.size() / 2);
    inputs.push_back(std::string{index, '\0'} + value);
    inputs.push_back(std::string{index, static_cast<char>(key.size())} + key + value);
  }
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion::fuzz;
  if (size < 2) return 0;
  stanchion::engine::Entries entries = good().entries;
  auto replaced = std::next(entries.begin(), data[0] % static_cast<std::ptrdiff_t>(entries.size()));
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (data[1] == 0) {
    replaced->second = rest;
  } else {
    const std::string_view key = rest.substr(0, data[1]);
    entries.erase(replaced);
    entries[std::string(key)] = rest.substr(key.size());
  }
  stanchion::engine::try_store(entries, good().now);
  return 0;
}

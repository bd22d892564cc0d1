// Any bytes as a journal's segment: recovery must accept or refuse them, and what it accepts must
// stay.
//
// The first byte says how the rest is used: bit 0, whether checksums are corrected, so that
// mutations get past them; bit 1, whether a good segment follows, so that this one is not the last;
// bits 4 to 7, the number of one frame whose checksums are left wrong.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/digest.h"
#include "fuzz/fuzz.h"
#include "journal/segment_log.h"
#include "journal/survey.h"
#include "os/sim_disk.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::journal;

constexpr SegmentOptions kOptions{
    .segment_size = 4096, .reserve_size = 2048, .append_size_max = 512, .zero_ahead = 0};
constexpr ShardOf kShard{ShardIndex(0), 1};

class FixedEntropy final : public os::Entropy {
 public:
  void fill(std::span<std::uint8_t> bytes) override { std::ranges::fill(bytes, std::uint8_t{7}); }
};

template <class T>
T load(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void store(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Corrects magic and checksums, following the sizes in the bytes.
void stamp(std::string& bytes, std::size_t spoiled_frame) {
  if (bytes.size() < kSegmentHeaderSize) return;
  std::ranges::copy(kSegmentMagic, bytes.begin());
  store(bytes, 40, xxh3_64(std::string_view(bytes).substr(0, 40)));
  const auto salt = load<std::uint64_t>(bytes, 32);
  std::size_t at = kSegmentHeaderSize;
  for (std::size_t frame = 0; at + kFrameHeaderSize <= bytes.size(); ++frame) {
    const auto size = load<std::uint32_t>(bytes, at + 24);
    if (size == 0 || size > bytes.size() - at - kFrameHeaderSize) return;
    if (frame != spoiled_frame) {
      const std::string_view view = bytes;
      store(bytes, at + 8, xxh3_64(view.substr(at + kFrameHeaderSize, size), salt));
      store(bytes, at, xxh3_64(view.substr(at + 8, kFrameHeaderSize - 8), salt));
    }
    at += static_cast<std::size_t>(frame_size(size));
  }
}

Result<std::vector<std::string>> open_and_replay(os::SimDisk& disk, std::string_view append) {
  const auto root = disk.root();
  FixedEntropy entropy;
  auto log = SegmentLog::open(*root, kShard, kOptions, entropy, from_millis(0));
  if (!log) return std::unexpected(log.error());
  std::vector<std::string> records;
  RETURN_IF_FAILED(
      (*log)->replay((*log)->first_position(), [&](Position, std::string_view record) -> Status {
        records.emplace_back(record);
        return {};
      }));
  const auto appended = (*log)->append_batch(std::vector<std::string_view>{append});
  if (!appended) return std::unexpected(appended.error());
  return records;
}

void check_one(std::string bytes, std::uint8_t control) {
  if ((control & 1) != 0) stamp(bytes, control >> 4);
  os::SimDisk disk;
  disk.put(segment_name(Position(1)), bytes);
  if ((control & 2) != 0)
    disk.put(segment_name(Position(4)), encode_segment_header({.first = Position(4)}));

  const auto root = disk.root();
  const auto surveyed = survey(*root);
  CHECK(surveyed.has_value(), "a survey reads anything");
  const auto& header = surveyed->segments.front().header;
  const bool ours = !header || (header->shard == kShard.index && header->shard_count == 1);

  const auto first = open_and_replay(disk, "appended");
  CHECK(first.has_value() == (ours && surveyed->usable()), "survey and recovery disagree");
  if (!first) return;
  disk.crash(std::nullopt);
  auto second = open_and_replay(disk, "again");
  CHECK(second.has_value(), "what was accepted once is accepted again");
  CHECK(!second->empty() && second->back() == "appended", "an acknowledged record is gone");
  second->pop_back();
  CHECK(*second == *first, "recovery changed what was there");
}

}  // namespace

std::vector<std::string> seeds() {
  const SegmentHeader header{.first = Position(1), .salt = Salt(0x5A17)};
  std::string segment = encode_segment_header(header);
  FrameBuilder frame;
  frame.add("one");
  frame.add("two");
  segment += frame.stamp(Position(1), header.salt);
  frame.clear();
  frame.add(std::string(40, 'x'));
  segment += frame.stamp(Position(3), header.salt);
  std::vector<std::string> inputs;
  for (const char control : {'\x00', '\x01', '\x02', '\x03', '\x11', '\xF1', '\xF3'}) {
    inputs.push_back(control + segment);
    inputs.push_back(control + segment + std::string(100, '\0'));
  }
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  stanchion::fuzz::check_one(bytes, data[0]);
  return 0;
}

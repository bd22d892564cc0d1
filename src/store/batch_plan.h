// Which entry of a batch goes into which file: the sorted batch is cut so that files rarely overlap
// others in the tree, and so need not be rewritten.
//
// A file whose key range overlaps no other goes straight to the bottom level and stays there. So
// entries put at the tail of a busy lane must not share a file with entries erased at its head, nor
// with another lane: such a file would span the whole backlog, and merging it would rewrite all of
// that. On the other hand each file costs a sync, so small pieces share one.
//
//   P1  Files are in order of key and their ranges do not overlap.
//   P2  All keys of a file begin with the same byte: kinds of records never share a file.
//   P3  A stretch (one run, one kind of change, no wide gap) of at least 1/64 of the batch has its
//       own file or files. A run is a set of keys that are equal except for their last eight bytes,
//       which are a big-endian number: the messages of a lane.
//   P4  A file holds at most about kFileSize bytes before compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace stanchion::store {

inline constexpr std::size_t kFileSize = std::size_t{32} << 20;
inline constexpr std::size_t kStretchSizeMin = std::size_t{16} << 10;
inline constexpr std::size_t kStretchesMax = 64;

// A change of one key, or of the keys from `key` up to `end`. Points into the batch.
struct Change {
  enum class Kind : std::uint8_t { kPut, kPutSeries, kErase, kEraseRange };

  bool puts() const { return kind == Kind::kPut || kind == Kind::kPutSeries; }

  std::string_view key{};
  std::string_view end{};
  const Put* put = nullptr;
  const Series* series = nullptr;
  std::uint32_t size = 0;  // Of key and value in a file, roughly; slow to compute again.
  Kind kind = Kind::kPut;
};

struct BatchPlan {
  std::vector<Change> changes;                 // Sorted; ranges that meet are merged.
  std::vector<std::span<const Change>> files;  // Together all of `changes`.
};

// Says whether a range that is to be erased holds anything.
using RangeFilter = std::function<bool(std::string_view begin, std::string_view end)>;

// Whether two keys are of the same run.
bool same_run(std::string_view a, std::string_view b);

// The batch must outlive the plan.
BatchPlan plan_batch(const Batch& batch, const RangeFilter& needed);

}  // namespace stanchion::store

// Upper bounds on the parts of a request, which hold before any of it is trusted. The size of a
// whole request is limited by the code that reads it from the network.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/limits.h"

namespace stanchion::wire {

inline constexpr std::size_t kJsonDepthMax = 32;

// Parameters of a Query request, from the URL and the body together. The largest useful request is
// a batch of ten messages with ten attributes each: ten times (6 + 10 × 3 + 3) parameters.
inline constexpr std::size_t kQueryParametersMax = 2'000;

// The same for CloudWatch, where 500 queries of nine parameters each are allowed.
inline constexpr std::size_t kCloudwatchParametersMax = 10'000;

// Values in the CBOR or the JSON of a request of CloudWatch, of which the largest useful one has some
// 10,000.
inline constexpr std::size_t kCloudwatchValuesMax = 50'000;

// Elements of one list or map, and of all lists and maps of a JSON request together, because a
// thousand lists may have a thousand elements each. Decoded elements take far more memory than
// their bytes, so this, not the size of the request, bounds what a request of empty elements costs.
inline constexpr std::size_t kElementsMax = 1'000;
inline constexpr std::size_t kElementsInAllMax = 2'000;

// Bytes of an error's text, which may quote what the client sent.
inline constexpr std::size_t kErrorTextMax = 16 * 1024;

// Signatures.
inline constexpr std::size_t kSignedHeadersMax = 64;
inline constexpr std::int64_t kClockSkewSecondsMax = 900;
inline constexpr std::int64_t kPresignedSecondsMax = 604'800;
inline constexpr std::size_t kSigningKeysMax = 1'024;

static_assert(kElementsMax > limits::kBatchEntriesMax && kElementsMax > limits::kTagsMax,
              "too many entries or tags are counted and refused by the engine, by their number");
static_assert(kQueryParametersMax > limits::kBatchEntriesMax * (6 + 3 * 10 + 3));
static_assert(kElementsInAllMax > kElementsMax + limits::kBatchEntriesMax,
              "ten entries with a hundred attributes each are counted by the engine, too");

}  // namespace stanchion::wire

// Frames between the nodes of a fleet as bytes.
//
//   frame   = size u32, number u8, fields               size: of everything behind it
//   fields  = count u8, { field }                       of a frame, a request, or the value of a reply
//   request = number u8, size u32, fields
//   reply   = 1 u8, number u8, size u32, fields         or 0 u8, error
//   error   = name, message
//
// Numbers are varints, instants and durations too; strings, lists and maps begin with their sizes;
// what is optional begins with 0 or 1. A field that is itself a struct is its members one after the
// other. The codec knows the members from the structs, so that none can be forgotten.
//
// Nodes of two releases understand each other: fields are only ever added at the end of a frame, a
// request or a reply, where an older node skips them and a newer one gives those that are absent
// their defaults. What cannot be told in this way needs another kLinkVersion (link/hello.h).
// Numbers of alternatives are explicit and never reused. There is no checksum: TLS has one, and
// without TLS the bytes do not leave the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fleet/transport.h"
#include "model/limits.h"

namespace stanchion::link {

inline constexpr std::size_t kFrameHeadSize = 4;

// The largest request that a node may take from its clients, and the largest frame: that request,
// or ten received messages, with what is around them.
inline constexpr std::size_t kRequestSizeMax = 16 << 20;
inline constexpr std::size_t kFrameSizeMax = 24 << 20;
// Elements of one list. It is more than the protocols let a client send, so that no client can make
// a node send what another one refuses.
inline constexpr std::size_t kListMax = 4'096;

static_assert(static_cast<std::size_t>(limits::kMessageSizeMax) * 2 *
                      static_cast<std::size_t>(limits::kReceiveMessagesMax) <
                  kFrameSizeMax,
              "a receive of the largest messages, each with its head and attributes, fits");
static_assert(limits::kListResultsMax < static_cast<std::int64_t>(kListMax));

// Appends the frame with its size; false, and nothing is appended, if it is larger than allowed.
[[nodiscard]] bool encode_frame(const fleet::Frame& frame, std::string& out);

// The size of the frame that follows, from its first kFrameHeadSize bytes. A failure if the frame is
// larger than allowed or cannot be one.
Result<std::size_t> frame_size(std::string_view head);

// `bytes` are those behind the size. They come from another machine, so everything is checked.
Result<fleet::Frame> decode_frame(std::string_view bytes);

}  // namespace stanchion::link

#include "model/message_position.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "model/limits.h"

namespace stanchion {
namespace {

// Not the mark of a receipt, which is signed with the same key.
constexpr std::uint8_t kMark = 2;
constexpr std::size_t kHeadSize = 1 + 8 + 8 + sizeof(MessageId);
constexpr std::size_t kSizeMax = kHeadSize + limits::kGroupIdSizeMax + sizeof(Mac);
constexpr std::size_t kTextSizeMax = (kSizeMax + 2) / 3 * 4;

}  // namespace

std::string format_position(const MessagePosition& position, const MacKey& key) {
  std::string bytes;
  bytes.reserve(kHeadSize + position.group.size() + sizeof(Mac));
  ByteWriter writer(bytes);
  writer.u8(kMark);
  writer.u64(position.queue.value());
  writer.u64(position.seq.value());
  writer.raw(as_text(position.id.bytes));
  writer.raw(position.group);
  const Mac mac = siphash(key, bytes);
  writer.raw(as_text(mac));
  return to_base64(bytes);
}

std::optional<MessagePosition> parse_position(std::string_view text, const MacKey& key) {
  if (text.size() > kTextSizeMax) return std::nullopt;
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() < kHeadSize + sizeof(Mac)) return std::nullopt;
  const std::string_view all = *bytes;
  const std::string_view known = all.substr(0, all.size() - sizeof(Mac));
  const Mac mac = siphash(key, known);
  if (!equal_in_constant_time(all.substr(known.size()), as_text(mac))) return std::nullopt;
  ByteReader reader(known);
  if (reader.u8() != kMark) return std::nullopt;
  MessagePosition position;
  position.queue = QueueId(reader.u64());
  position.seq = Seq(reader.u64());
  std::ranges::copy(reader.raw(position.id.bytes.size()), position.id.bytes.begin());
  position.group = reader.raw(reader.remaining());
  return position;
}

}  // namespace stanchion

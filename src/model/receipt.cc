#include "model/receipt.h"

#include "base/bytes.h"
#include "base/text.h"
#include "model/limits.h"

namespace stanchion {
namespace {

constexpr std::string_view kMark = "\x01\x01\x01";
constexpr std::size_t kSignedSize = 3 + 8 + 8 + 4;

}  // namespace

std::string format_receipt(const Receipt& receipt, const MacKey& key) {
  std::string bytes;
  bytes.reserve(kSignedSize + sizeof(Mac));
  ByteWriter writer(bytes);
  writer.raw(kMark);
  writer.u64(receipt.queue.value());
  writer.u64(receipt.seq.value());
  writer.u32(receipt.receive);
  writer.raw(as_text(siphash(key, bytes)));
  return to_base64(bytes);
}

std::optional<Receipt> parse_receipt(std::string_view handle, const MacKey& key) {
  if (handle.size() > limits::kReceiptHandleSizeMax) return std::nullopt;
  const auto bytes = from_base64(handle);
  if (!bytes || bytes->size() != kSignedSize + sizeof(Mac)) return std::nullopt;
  const std::string_view all = *bytes;
  const Mac mac = siphash(key, all.substr(0, kSignedSize));
  if (!equal_in_constant_time(all.substr(kSignedSize), as_text(mac))) return std::nullopt;
  ByteReader reader(all);
  if (reader.raw(kMark.size()) != kMark) return std::nullopt;
  Receipt receipt;
  receipt.queue = QueueId(reader.u64());
  receipt.seq = Seq(reader.u64());
  receipt.receive = reader.u32();
  return receipt;
}

}  // namespace stanchion

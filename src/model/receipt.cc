#include "model/receipt.h"

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/text.h"
#include "model/limits.h"

namespace stanchion {
namespace {

constexpr std::string_view kMark = "\x01\x01\x01";
constexpr std::size_t kSignedSize = 3 + 8 + 8 + 4;

}  // namespace

std::string format_receipt(const Receipt& receipt, const MacKey& key) {
  std::array<char, kSignedSize + sizeof(Mac)> bytes;
  const std::uint64_t queue = receipt.queue.value(), seq = receipt.seq.value();
  std::memcpy(bytes.data(), kMark.data(), 3);
  std::memcpy(bytes.data() + 3, &queue, sizeof queue);
  std::memcpy(bytes.data() + 11, &seq, sizeof seq);
  std::memcpy(bytes.data() + 19, &receipt.receive, sizeof receipt.receive);
  const Mac mac = siphash(key, as_text(bytes).substr(0, kSignedSize));
  std::memcpy(bytes.data() + kSignedSize, mac.data(), mac.size());
  return to_base64(as_text(bytes));
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

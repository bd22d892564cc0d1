#include "journal/log_entry.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/digest.h"

namespace stanchion::journal {
namespace {

constexpr std::size_t kChecksumOffset = 56;

std::uint64_t checksum_of(std::string_view header, std::string_view payload) {
  return xxh3_64(payload, xxh3_64(header.substr(0, kChecksumOffset)));
}

// Sizes and counts that no writer makes, although the checksum is right.
bool is_possible(const DecodedLogEntry& entry) {
  const LogEntry& head = entry.head;
  if (head.epoch == Epoch()) return false;
  if (head.kind == LogEntryKind::kBarrier && head.before) return false;
  if (head.kind != LogEntryKind::kRecords) return head.count == 0 && entry.records.empty();
  if (head.count == 0 || head.first == Position()) return false;
  if (head.first.value() + head.count < head.first.value()) return false;
  ByteReader reader(entry.records);
  for (std::uint64_t i = 0; i < head.count && reader.ok(); ++i)
    if (reader.text().size() > limits::kRecordSizeMax) return false;
  return reader.ok() && reader.at_end();
}

bool is_kind(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(LogEntryKind::kRecords) &&
         kind <= static_cast<std::uint8_t>(LogEntryKind::kBarrier);
}

// How many bytes a changed size before an entry moves its beginning at most.
constexpr std::size_t kMovedMax = 3;

// One byte of the magic may have changed, or a size before it.
bool begins_like_entry(std::string_view bytes) {
  for (std::size_t at = 0; at <= kMovedMax; ++at) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < kLogEntryMagic.size() && at + i < bytes.size(); ++i)
      if (bytes[at + i] == kLogEntryMagic[i]) ++same;
    if (same + 1 >= kLogEntryMagic.size()) return true;
  }
  return bytes.starts_with(kLogEntryMagic.substr(1));
}

// Entries have no key. A changed size may make one of the beginning of an entry: the size of the value,
// which takes up to four bytes with the top bit set in all but the last, and then the entry.
bool is_cut_off_entry(std::string_view key) {
  constexpr std::size_t kSizeAndMagicMax = 7;
  if (key.contains(kLogEntryMagic)) return true;
  if (key.empty() || key.size() > kSizeAndMagicMax) return false;
  if ((static_cast<unsigned char>(key.front()) & 0x80) == 0) return false;
  return key.ends_with("S") || key.ends_with("ST") || key.ends_with("STN");
}

}  // namespace

void LogEntryBuilder::add(std::string_view record) {
  CHECK(record.size() <= limits::kRecordSizeMax, "record too large");
  CHECK(fits(record.size()), "entry too large");
  ByteWriter(bytes_).text(record);
  ++record_count_;
}

std::string LogEntryBuilder::finish(LogEntryKind kind, Epoch epoch, Position first,
                                    std::optional<LogDigest> before, const LogWriterId& from,
                                    std::uint8_t version) {
  CHECK(version >= 1 && version <= kLogEntryVersion, "this release knows the version");
  CHECK((kind == LogEntryKind::kRecords) == (record_count_ > 0), "only records have records");
  if (version == 1 || kind == LogEntryKind::kBarrier) before.reset();
  CHECK(before || version == 1 || kind != LogEntryKind::kRecords, "LG4");
  std::string bytes = std::exchange(bytes_, std::string(kRoom, '\0'));
  if (before) {
    std::string digest;
    ByteWriter(digest).u64(before->value());
    std::ranges::copy(digest, bytes.begin() + kLogEntryHeaderSize);
  } else {
    bytes.erase(kLogEntryHeaderSize, kLogDigestSize);
  }
  const std::string_view payload = std::string_view(bytes).substr(kLogEntryHeaderSize);
  std::string header;
  header.reserve(kLogEntryHeaderSize);
  ByteWriter writer(header);
  writer.raw(kLogEntryMagic);
  writer.u8(version);
  writer.u8(static_cast<std::uint8_t>(kind));
  writer.u8(0);
  writer.u8(0);
  writer.u64(from.fleet);
  writer.u32(from.shard.value());
  writer.u32(from.node);
  writer.u64(from.writer);
  writer.u64(epoch.value());
  writer.u64(first.value());
  writer.u32(std::exchange(record_count_, 0));
  writer.u32(static_cast<std::uint32_t>(payload.size()));
  CHECK(header.size() == kChecksumOffset, "header layout");
  writer.u64(checksum_of(header, payload));
  std::ranges::copy(header, bytes.begin());
  return bytes;
}

bool may_be_log_entry(std::string_view key, std::string_view bytes) {
  return bytes.size() < kLogForeignSizeMin || begins_like_entry(bytes) || is_cut_off_entry(key);
}

Result<DecodedLogEntry> decode_log_entry(std::string_view bytes) {
  if (!begins_like_entry(bytes) && bytes.size() >= kLogForeignSizeMin)
    return fail("does not begin like an entry");
  if (bytes.size() < kLogEntryHeaderSize) return fail("is cut short");
  DecodedLogEntry entry;
  const bool has_magic = bytes.starts_with(kLogEntryMagic);
  ByteReader reader(bytes.substr(kLogEntryMagic.size()));
  const std::uint8_t version = reader.u8();
  const std::uint8_t kind = reader.u8();
  reader.raw(2);
  entry.from.fleet = reader.u64();
  entry.from.shard = ShardIndex(reader.u32());
  entry.from.node = reader.u32();
  entry.from.writer = reader.u64();
  entry.head.epoch = Epoch(reader.u64());
  entry.head.first = Position(reader.u64());
  entry.head.count = reader.u32();
  const std::uint32_t payload_size = reader.u32();
  const std::uint64_t checksum = reader.u64();
  entry.records = bytes.substr(kLogEntryHeaderSize);
  if (!has_magic || checksum != checksum_of(bytes, entry.records) ||
      payload_size != entry.records.size())
    return fail("does not match its checksum");
  if (version == 0) return fail("has the version 0, which never was");
  entry.is_of_later_version = version > kLogEntryVersion;
  if (entry.is_of_later_version) return entry;
  if (bytes.size() > kLogEntrySizeMax)
    return fail("has a size that no entry has: " + std::to_string(bytes.size()));
  if (!is_kind(kind)) return fail("is of the unknown kind " + std::to_string(kind));
  entry.head.kind = static_cast<LogEntryKind>(kind);
  if (version > 1 && (entry.head.kind == LogEntryKind::kRecords || !entry.records.empty())) {
    ByteReader digest(entry.records);
    entry.head.before = LogDigest(digest.u64());
    if (!digest.ok()) return fail("contradicts itself");
    entry.records.remove_prefix(kLogDigestSize);
  }
  if (!is_possible(entry)) return fail("contradicts itself");
  return entry;
}

Status visit_records(const DecodedLogEntry& entry, const RecordVisitor& visit) {
  ByteReader reader(entry.records);
  Position position = entry.head.first;
  for (std::uint64_t i = 0; i < entry.head.count; ++i) {
    RETURN_IF_FAILED(visit(position, reader.text()));
    position = position.next();
  }
  CHECK(reader.ok() && reader.at_end(), "a decoded entry has the records that it counts");
  return {};
}

}  // namespace stanchion::journal

// The bytes of an entry in a log that several machines write (shared_log.h), for reader and writer
// alike. docs/formats.md has the grammar and a worked example; numbers are little-endian.
//
//   entry    0 magic "STNE"            4 version u8: 1        5 kind u8       6 zero u16
//            8 fleet u64              16 shard u32           20 node u32     24 writer u64
//           32 epoch u64              40 first position u64  48 records u32  52 payload size u32
//           56 checksum u64: XXH3-64 of the payload, seeded with the XXH3-64 of bytes 0 to 55
//           64 payload: per record its size as a varint and its bytes, as in a frame of a segment
//
// The log keeps entries apart, so that nothing has to be searched for, and the checksum is there
// for bytes that changed on their way. The header, and what its checksum covers, is the same in all
// versions: whose entry it is can be told of any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/shared_log.h"
#include "model/ids.h"

namespace stanchion::journal {

inline constexpr std::string_view kLogEntryMagic = "STNE";
// The newest that this release reads and writes. It also reads all before it.
inline constexpr std::uint8_t kLogEntryVersion = 1;
inline constexpr std::size_t kLogEntryHeaderSize = 64;
inline constexpr std::size_t kLogEntrySizeMax = kLogEntryHeaderSize + kPayloadSizeMax;

// Whose log it is, and who writes.
struct LogWriterId {
  std::uint64_t fleet = 0;  // Of the founding: two fleets of one name have two ids.
  ShardIndex shard{};
  std::uint32_t node = 0;
  std::uint64_t writer = 0;  // Random for each opening, so that one's own entries are known.

  friend bool operator==(const LogWriterId&, const LogWriterId&) = default;
};

struct DecodedLogEntry {
  LogEntry head;
  LogWriterId from;
  std::string_view payload;  // Of the bytes that were decoded.
  // It is whole, and only a later release knows what is in it: of `head` nothing counts.
  bool is_of_later_version = false;
};

// Builds an entry in place: records are encoded once, and the bytes are sent without a copy.
class LogEntryBuilder {
 public:
  LogEntryBuilder() : bytes_(kLogEntryHeaderSize, '\0') {}

  // REQUIRES: record.size() <= limits::kRecordSizeMax, and the record fits().
  void add(std::string_view record);

  bool fits(std::size_t record_size) const {
    return payload_size() + kRecordPrefixSizeMax + record_size <= kPayloadSizeMax;
  }
  std::size_t payload_size() const { return bytes_.size() - kLogEntryHeaderSize; }
  std::uint32_t record_count() const { return record_count_; }

  // The whole entry; the builder is empty afterwards. A claim and a barrier have no records.
  // REQUIRES: kind is kRecords if and only if there are records; a version up to kLogEntryVersion.
  std::string finish(LogEntryKind kind, Epoch epoch, Position first, const LogWriterId& from,
                     std::uint8_t version = kLogEntryVersion);

 private:
  std::string bytes_;  // Room for the header, then the payload.
  std::uint32_t record_count_ = 0;
};

// Whether the bytes can be an entry, of any version. What cannot is of no effect: anybody may append
// to a log by mistake, and all readers see the same bytes.
bool looks_like_log_entry(std::string_view bytes);

// A failure says what is wrong: bytes that changed, sizes that contradict each other. `bytes` must
// outlive what is returned.
Result<DecodedLogEntry> decode_log_entry(std::string_view bytes);

// Passes the records of an entry on, in order. A failure of `visit` ends it and is returned.
Status visit_records(const DecodedLogEntry& entry, const RecordVisitor& visit);

}  // namespace stanchion::journal

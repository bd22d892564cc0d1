// The bytes of an entry in a log that several machines write (shared_log.h), for reader and writer
// alike. docs/formats.md has the grammar and a worked example; numbers are little-endian.
//
//   entry    0 magic "STNE"            4 version u8: 2        5 kind u8       6 zero u16
//            8 fleet u64              16 shard u32           20 node u32     24 writer u64
//           32 epoch u64              40 first position u64  48 records u32  52 payload size u32
//           56 checksum u64: XXH3-64 of the payload, seeded with the XXH3-64 of bytes 0 to 55
//           64 payload: digest u64 of the records before, then per record its size as a varint and
//              its bytes, as in a frame of a segment; of a claim the digest or nothing; of a barrier
//              nothing. Version 1 has no digest.
//
// The log keeps entries apart, so that nothing has to be searched for, and the checksum is there
// for bytes that changed on their way. The header, and what its checksum covers, is the same in all
// versions: whose entry it is can be told of any.
#pragma once

#include <cstdint>
#include <optional>
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
inline constexpr std::uint8_t kLogEntryVersion = 2;
// The first with a chain of digests (LG4). Once a log has one, all its entries have: whoever reads
// a log that was trimmed knows the digest from its first entry on.
inline constexpr std::uint8_t kChainVersion = 2;
inline constexpr std::size_t kLogEntryHeaderSize = 64;
inline constexpr std::size_t kLogDigestSize = 8;
// What is shorter is always taken for the rest of an entry.
inline constexpr std::size_t kLogForeignSizeMin = 8;
inline constexpr std::size_t kLogEntrySizeMax =
    kLogEntryHeaderSize + kLogDigestSize + kPayloadSizeMax;

// Whose log it is, and who writes.
struct LogWriterId {
  std::uint64_t fleet = 0;  // From the fleet's metadata: two fleets of one name have two ids.
  ShardIndex shard{};
  std::uint32_t node = 0;
  std::uint64_t writer = 0;  // Random for each opening, so that one's own entries are known.

  friend bool operator==(const LogWriterId&, const LogWriterId&) = default;
};

struct DecodedLogEntry {
  LogEntry head;
  LogWriterId from;
  std::string_view records;  // Of the bytes that were decoded.
  // It is whole, and only a later release knows what is in it: of `head` nothing counts.
  bool is_of_later_version = false;
};

// Builds an entry in place: records are encoded once, and the bytes are sent without a copy.
class LogEntryBuilder {
 public:
  LogEntryBuilder() : bytes_(kRoom, '\0') {}

  // REQUIRES: record.size() <= limits::kRecordSizeMax, and the record fits().
  void add(std::string_view record);

  bool fits(std::size_t record_size) const {
    return records_size() + kRecordPrefixSizeMax + record_size <= kPayloadSizeMax;
  }
  std::size_t records_size() const { return bytes_.size() - kRoom; }
  std::uint32_t record_count() const { return record_count_; }

  // The whole entry; the builder is empty afterwards. A claim and a barrier have no records.
  // Version 1 says no digest, and records of version 2 do.
  // REQUIRES: kind is kRecords if and only if there are records; a version up to kLogEntryVersion.
  std::string finish(LogEntryKind kind, Epoch epoch, Position first,
                     std::optional<LogDigest> before, const LogWriterId& from,
                     std::uint8_t version = kLogEntryVersion);

 private:
  static constexpr std::size_t kRoom = kLogEntryHeaderSize + kLogDigestSize;

  std::string bytes_;  // Room for header and digest, then the records.
  std::uint32_t record_count_ = 0;
};

// Whether a record of a log, with its key, can be an entry of any version, or was one before a byte
// changed: of the entry, or of what says where it begins and ends. What cannot is of no effect: anybody
// may append to a log by mistake, and all readers see the same bytes. Something very short may be all
// that a changed size has left of an entry.
bool may_be_log_entry(std::string_view key, std::string_view bytes);

// A failure says what is wrong: bytes that changed, sizes that contradict each other. `bytes` must
// outlive what is returned.
Result<DecodedLogEntry> decode_log_entry(std::string_view bytes);

// Passes the records of an entry on, in order. A failure of `visit` ends it and is returned.
Status visit_records(const DecodedLogEntry& entry, const RecordVisitor& visit);

}  // namespace stanchion::journal

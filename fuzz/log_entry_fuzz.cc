// Any bytes as an entry of a shared log: decoding must accept or refuse them, and what it accepts
// must mean the same after it was written again.
//
// The first byte says whether the checksum is corrected, so that mutations get past it.
#include <cstring>

#include "base/check.h"
#include "base/digest.h"
#include "fuzz/fuzz.h"
#include "journal/log_entry.h"

namespace stanchion::fuzz {
namespace {

using namespace stanchion::journal;

constexpr std::size_t kChecksumOffset = 56;

void stamp(std::string& bytes) {
  if (bytes.size() < kLogEntryHeaderSize) return;
  const std::string_view view = bytes;
  const std::uint64_t checksum =
      xxh3_64(view.substr(kLogEntryHeaderSize), xxh3_64(view.substr(0, kChecksumOffset)));
  std::memcpy(bytes.data() + kChecksumOffset, &checksum, sizeof checksum);
}

void check_one(std::string bytes, bool corrected) {
  if (corrected) stamp(bytes);
  const auto entry = decode_log_entry(bytes);
  if (!entry) {
    CHECK(!entry.error().message.empty(), "a refusal has a reason");
    return;
  }
  CHECK(may_be_log_entry({}, bytes), "what is decoded looks like an entry");
  if (entry->is_of_later_version) return;
  LogEntryBuilder again;
  Position next = entry->head.first;
  const Status visited = visit_records(*entry, [&](Position position, std::string_view record) {
    CHECK(position == next, "positions are dense");
    next = next.next();
    again.add(record);
    return Status();
  });
  CHECK(visited.has_value() && again.record_count() == entry->head.count, "all records are there");
  const std::string written = again.finish(entry->head.kind, entry->head.epoch, entry->head.first,
                                           entry->head.kind == LogEntryKind::kRecords
                                               ? entry->head.before.value_or(LogDigest())
                                               : entry->head.before,
                                           entry->from);
  const auto read = decode_log_entry(written);
  CHECK(read && read->head.first == entry->head.first && read->from == entry->from,
        "what was accepted is accepted again");
  LogReader reader(Position(1), Epoch(1));
  (void)reader.judge(entry->head);
}

}  // namespace

std::vector<std::string> seeds() {
  const LogWriterId from{.fleet = 1, .shard = ShardIndex(2), .node = 3, .writer = 4};
  LogEntryBuilder builder;
  builder.add("one");
  builder.add(std::string(200, 'x'));
  const std::string records =
      builder.finish(LogEntryKind::kRecords, Epoch(1), Position(1), LogDigest(), from);
  const std::string claim =
      builder.finish(LogEntryKind::kClaim, Epoch(2), Position(3), LogDigest(7), from);
  std::vector<std::string> inputs;
  for (const char control : {'\x00', '\x01'}) {
    inputs.push_back(control + records);
    inputs.push_back(control + claim);
  }
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  stanchion::fuzz::check_one(bytes, (data[0] & 1) != 0);
  return 0;
}

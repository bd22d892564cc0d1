#include "engine/store/chunk_record.h"

#include "base/bytes.h"
#include "model/dates.h"

namespace stanchion::engine {

std::string encode(const ChunkRecord& record) {
  std::string out;
  ByteWriter writer(out);
  const ChunkSummary& summary = record.summary;
  writer.text(record.group);
  writer.u64(record.until.value());
  writer.u32(summary.members);
  writer.u64(summary.first.value());
  writer.u64(summary.last.value());
  writer.u32(record.homed);
  writer.u32(record.bytes);
  for (const Instant t : {summary.first_entered, summary.last_entered, summary.retained_min,
                          summary.retained_max, summary.due_max})
    writer.i64(to_millis(t));
  writer.u8(record.packed);
  return out;
}

std::optional<ChunkRecord> parse_chunk(std::string_view value) {
  ByteReader reader(value);
  ChunkRecord record;
  record.group = reader.text();
  record.until = Seq(reader.u64());
  ChunkSummary& summary = record.summary;
  summary.members = reader.u32();
  summary.first = Seq(reader.u64());
  summary.last = Seq(reader.u64());
  record.homed = reader.u32();
  record.bytes = reader.u32();
  for (Instant* t : {&summary.first_entered, &summary.last_entered, &summary.retained_min,
                     &summary.retained_max, &summary.due_max})
    *t = from_millis(reader.i64());
  record.packed = reader.u8() != 0;
  if (!reader.ok() || !reader.at_end() || (record.packed && summary.members == 0))
    return std::nullopt;
  return record;
}

bool is_possible(const ChunkRecord& record, Seq from) {
  const ChunkSummary& summary = record.summary;
  if (from == Seq() || record.until < from || summary.members > record.homed ||
      !is_date(summary.due_max))
    return false;
  if (summary.members == 0) return !record.packed;
  return from <= summary.first && summary.first <= summary.last && summary.last <= record.until &&
         summary.members - 1 <= summary.last.value() - summary.first.value() &&
         is_date(summary.first_entered) && is_date(summary.last_entered) &&
         is_date(summary.retained_min) && is_date(summary.retained_max) &&
         summary.first_entered <= summary.last_entered &&
         summary.retained_min <= summary.retained_max;
}

}  // namespace stanchion::engine

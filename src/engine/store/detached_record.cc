#include "engine/store/detached_record.h"

#include "base/bytes.h"
#include "model/dates.h"

namespace stanchion::engine {

std::string encode_detached(const Message& detached, LaneName lane) {
  std::string out;
  ByteWriter writer(out);
  writer.u64(lane.high);
  writer.u64(lane.low);
  writer.u64(detached.home->from.value());
  for (const Instant t : {detached.entered, detached.retained_from, detached.due, detached.received,
                          detached.first_received})
    writer.i64(to_millis(t));
  writer.u32(detached.receive_count);
  writer.u8(static_cast<std::uint8_t>(detached.state));
  writer.u8(detached.stays);
  return out;
}

std::optional<DetachedRecord> parse_detached(Seq seq, std::string_view value) {
  ByteReader reader(value);
  const std::uint64_t high = reader.u64();
  const LaneName lane{.low = reader.u64(), .high = high};
  const Seq home(reader.u64());
  auto message = std::make_unique<Message>();
  message->seq = seq;
  for (Instant* t : {&message->entered, &message->retained_from, &message->due, &message->received,
                     &message->first_received})
    *t = from_millis(reader.i64());
  message->receive_count = reader.u32();
  message->state = static_cast<State>(reader.u8());
  message->stays = reader.u8() != 0;
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  message->saved = message->record_saved = true;
  return DetachedRecord{lane, home, std::move(message)};
}

bool can_be_detached(const Message& message, const Chunk& home, bool fifo) {
  for (const Instant t : {message.entered, message.retained_from, message.due, message.received,
                          message.first_received})
    if (!is_date(t)) return false;
  // On FIFO queues delayed messages wait in line, so they are not detached messages.
  return message.state <= State::kInFlight && (message.state != State::kDelayed || !fifo) &&
         (message.state != State::kInFlight || message.receive_count > 0) &&
         home.from <= message.seq && message.seq <= home.until;
}

}  // namespace stanchion::engine

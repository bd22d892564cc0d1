#include "engine/store/stranger_record.h"

#include "base/bytes.h"
#include "model/dates.h"

namespace stanchion::engine {

std::string encode_stranger(const Message& stranger, LaneName lane) {
  std::string out;
  ByteWriter writer(out);
  writer.u64(lane.high);
  writer.u64(lane.low);
  writer.u64(stranger.home->from.value());
  for (const Instant t : {stranger.entered, stranger.retained_from, stranger.due, stranger.received,
                          stranger.first_received})
    writer.i64(to_millis(t));
  writer.u32(stranger.receive_count);
  writer.u8(static_cast<std::uint8_t>(stranger.state));
  writer.u8(stranger.stays);
  return out;
}

std::optional<StrangerRecord> parse_stranger(Seq seq, std::string_view value) {
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
  return StrangerRecord{lane, home, std::move(message)};
}

bool can_be_stranger(const Message& message, const Chunk& home, bool fifo) {
  for (const Instant t : {message.entered, message.retained_from, message.due, message.received,
                          message.first_received})
    if (!is_date(t)) return false;
  // On FIFO queues delayed messages wait in line, so they are not strangers.
  return message.state <= State::kInFlight && (message.state != State::kDelayed || !fifo) &&
         (message.state != State::kInFlight || message.receive_count > 0) &&
         home.from <= message.seq && message.seq <= home.until;
}

}  // namespace stanchion::engine

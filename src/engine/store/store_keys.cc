#include "engine/store/store_keys.h"

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "engine/store/dates.h"

namespace stanchion::engine {
namespace {

void put_number(std::string& key, std::uint64_t value, std::size_t bytes = 8) {
  for (std::size_t i = bytes; i-- > 0;) key.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

std::uint64_t zigzag(Duration d) {
  const std::int64_t n = d.count();
  return static_cast<std::uint64_t>(n) << 1 ^ static_cast<std::uint64_t>(n >> 63);
}

Duration unzigzag(std::uint64_t n) {
  return Duration(static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1));
}

std::string key_of(KeyType type) {
  return std::string(1, static_cast<char>(type));
}

std::string key_of(KeyType type, QueueId queue) {
  std::string key = key_of(type);
  put_number(key, queue.value());
  return key;
}

std::string key_of(KeyType type, StockName stock) {
  std::string key = key_of(type, stock.queue);
  put_number(key, stock.incarnation, 4);
  return key;
}

Key key_of(KeyType type, StockName stock, LaneName lane, Seq seq) {
  // There are as many of these as messages.
  std::array<char, 37> key;
  const auto put = [&](std::size_t at, std::uint64_t value) {
    const std::uint64_t big = __builtin_bswap64(value);
    std::memcpy(key.data() + at, &big, sizeof big);
  };
  key[0] = static_cast<char>(type);
  put(1, stock.queue.value());
  const std::uint32_t incarnation = __builtin_bswap32(stock.incarnation);
  std::memcpy(key.data() + 9, &incarnation, sizeof incarnation);
  put(13, lane.high);
  put(21, lane.low);
  put(29, seq.value());
  return std::string_view(key.data(), key.size());
}

}  // namespace

LaneName lane_name(std::string_view group) {
  return xxh3_128(group);
}

Key shard_key() {
  return key_of(KeyType::kShard);
}

Key queue_key(QueueId queue) {
  return key_of(KeyType::kQueue, queue);
}

Key chunk_key(StockName stock, LaneName lane, Seq from) {
  return key_of(KeyType::kChunk, stock, lane, from);
}

Key stranger_key(StockName stock, Seq seq) {
  std::string key = key_of(KeyType::kStranger, stock);
  put_number(key, seq.value());
  return key;
}

Key deduplication_key(StockName stock, Instant expires, Seq seq) {
  std::string key = key_of(KeyType::kDeduplication, stock);
  put_number(key, static_cast<std::uint64_t>(to_millis(expires)));
  put_number(key, seq.value());
  return key;
}

Key attempt_key(StockName stock, std::string_view id) {
  std::string key = key_of(KeyType::kAttempt, stock);
  const Hash128 hash = xxh3_128(id);
  put_number(key, hash.high);
  put_number(key, hash.low);
  return key;
}

Key departure_key(TransferNo number) {
  std::string key = key_of(KeyType::kDeparture);
  put_number(key, number.value());
  return key;
}

Key message_key(StockName stock, LaneName lane, Seq seq) {
  return key_of(KeyType::kMessage, stock, lane, seq);
}

Key place_key(StockName stock, LaneName lane) {
  std::string key = key_of(KeyType::kPlace, stock);
  put_number(key, lane.high);
  put_number(key, lane.low);
  return key;
}

KeyRange all_of(KeyType type) {
  return {key_of(type), std::string(1, static_cast<char>(static_cast<int>(type) + 1))};
}

KeyRange all_deduplication(StockName stock) {
  return {key_of(KeyType::kDeduplication, stock),
          key_of(KeyType::kDeduplication, StockName{stock.queue, stock.incarnation + 1})};
}

KeyRange messages_between(StockName stock, LaneName lane, Seq first, Seq last) {
  return {std::string(message_key(stock, lane, first)),
          std::string(message_key(stock, lane, last.next()))};
}

std::vector<KeyRange> stock_ranges(QueueId queue, std::uint32_t first, std::uint32_t last) {
  std::vector<KeyRange> ranges;
  for (const KeyType type : {KeyType::kChunk, KeyType::kStranger, KeyType::kDeduplication,
                             KeyType::kAttempt, KeyType::kMessage, KeyType::kPlace}) {
    ranges.push_back({key_of(type, StockName{queue, first}),
                      last == UINT32_MAX ? key_of(type, queue.next())
                                         : key_of(type, StockName{queue, last + 1})});
  }
  return ranges;
}

std::uint64_t KeyReader::number(std::size_t bytes) {
  if (key_.size() < bytes) {
    ok_ = false;
    key_ = {};
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<std::uint8_t>(key_[i]);
  key_.remove_prefix(bytes);
  return value;
}

namespace {

// Entry: size u8; entered as a varint; how much earlier the retention clock began and how much
// later it is due, zigzag; the receive count, and if there is one, when it was first received,
// zigzag from entered. Small enough that most take no memory of their own.
void write_entry(std::string& out, const Message& message) {
  const std::size_t at = out.size();
  out.push_back('\0');
  ByteWriter writer(out);
  writer.varint(static_cast<std::uint64_t>(to_millis(message.entered)));
  writer.varint(zigzag(message.entered - message.retained_from));
  writer.varint(zigzag(message.due - message.entered));
  writer.varint(message.receive_count);
  if (message.receive_count > 0) writer.varint(zigzag(message.first_received - message.entered));
  out[at] = static_cast<char>(out.size() - at - 1);
}

// What most entries take.
constexpr std::size_t kEntrySize = 11;

}  // namespace

Put put_message(StockName stock, LaneName lane, const Message& message) {
  Put put{message_key(stock, lane, message.seq), {}, message.content};
  write_entry(put.head, message);
  return put;
}

Series series_between(StockName stock, LaneName lane, Seq first, Seq last, std::size_t count) {
  Series series{message_key(stock, lane, first), message_key(stock, lane, last.next()), {}, {}, 0};
  series.heads.reserve(count * kEntrySize);
  series.entries.reserve(count);
  return series;
}

void add_message(Series& series, const Message& message) {
  const std::size_t head = series.heads.size();
  write_entry(series.heads, message);
  series.value_bytes += series.heads.size() - head + message.content->encoded().size();
  series.entries.push_back(
      {message.seq.value(), message.content, static_cast<std::uint32_t>(series.heads.size())});
}

namespace {

Status parse_entry(std::string_view head, StoredMessage& out) {
  if (head.empty() || head.size() != 1U + static_cast<std::uint8_t>(head[0]))
    return fail("a message in the store is cut short");
  ByteReader reader(head.substr(1));
  out.entered = from_millis(static_cast<std::int64_t>(reader.varint()));
  out.retained_from = out.entered - unzigzag(reader.varint());
  out.due = out.entered + unzigzag(reader.varint());
  out.receive_count = static_cast<std::uint32_t>(reader.varint());
  if (out.receive_count > 0) out.first_received = out.entered + unzigzag(reader.varint());
  if (!reader.ok() || !is_date(out.entered) || !is_date(out.retained_from) || !is_date(out.due) ||
      !is_date(out.first_received))
    return fail("a message in the store has a damaged entry");
  return {};
}

Status parse_one(Seq seq, std::string_view head, std::string_view encoded, bool with_content,
                 std::vector<StoredMessage>& out) {
  StoredMessage message;
  message.seq = seq;
  RETURN_IF_FAILED(parse_entry(head, message));
  if (with_content) {
    auto content = Content::parse(encoded);
    if (!content) return std::unexpected(std::move(content).error());
    message.content = std::move(*content);
  }
  out.push_back(std::move(message));
  return {};
}

}  // namespace

Status parse_stored_messages(std::string_view key, std::string_view value, bool with_content,
                             std::vector<StoredMessage>& out) {
  KeyReader parts(key);
  parts.type();
  parts.stock();
  parts.lane();
  Seq seq = parts.seq();
  if (!parts.complete() || value.empty()) return fail("a message in the store is cut short");
  if (value[0] != Series::kPackMark) {
    const std::size_t head = 1U + static_cast<std::uint8_t>(value[0]);
    if (value.size() < head) return fail("a message in the store is cut short");
    return parse_one(seq, value.substr(0, head), value.substr(head), with_content, out);
  }
  ByteReader reader(value.substr(1));
  while (!reader.at_end()) {
    seq = Seq(seq.value() + reader.varint());
    const std::string_view head = reader.text();
    const std::string_view encoded = reader.text();
    if (!reader.ok()) return fail("a pack of messages in the store is cut short");
    RETURN_IF_FAILED(parse_one(seq, head, encoded, with_content, out));
  }
  return {};
}

}  // namespace stanchion::engine

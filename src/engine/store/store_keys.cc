#include "engine/store/store_keys.h"

#include <array>
#include <cstring>

namespace stanchion::engine {
namespace {

void put_number(std::string& key, std::uint64_t value, std::size_t bytes = 8) {
  for (std::size_t i = bytes; i-- > 0;) key.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
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
  // There are as many of these keys as messages.
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

Key detached_key(StockName stock, Seq seq) {
  std::string key = key_of(KeyType::kDetached, stock);
  put_number(key, seq.value());
  return key;
}

Key deduplication_key(StockName stock, Instant expires, Seq seq) {
  std::string key = key_of(KeyType::kDeduplication, stock);
  put_number(key, static_cast<std::uint64_t>(to_millis(expires)));
  put_number(key, seq.value());
  return key;
}

Key attempt_key(StockName stock, const Hash128& id) {
  std::string key = key_of(KeyType::kAttempt, stock);
  put_number(key, id.high);
  put_number(key, id.low);
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

KeyRange departures_between(TransferNo first, TransferNo last) {
  return {std::string(departure_key(first)), std::string(departure_key(last.next()))};
}

KeyRange messages_between(StockName stock, LaneName lane, Seq first, Seq last) {
  return {std::string(message_key(stock, lane, first)),
          std::string(message_key(stock, lane, last.next()))};
}

std::vector<KeyRange> stock_ranges(QueueId queue, std::uint32_t first, std::uint32_t last) {
  std::vector<KeyRange> ranges;
  for (const KeyType type : {KeyType::kChunk, KeyType::kDetached, KeyType::kDeduplication,
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

}  // namespace stanchion::engine

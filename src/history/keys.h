// The keys of the history's store, in one place for those who write and those who read.
// docs/formats.md has the bytes. Only for this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "history/point.h"

namespace stanchion::history {

inline constexpr char kMetaKind = 1;
inline constexpr char kQueueKind = 2;
inline constexpr char kBaseKind = 3;
inline constexpr char kMinuteKind = 4;
inline constexpr char kFiveKind = 5;

inline constexpr Minute kMinutesOfFive = 5;

template <class T>
void append_big_endian(std::string& key, T value) {
  for (std::size_t byte = sizeof value; byte-- > 0;)
    key.push_back(static_cast<char>(value >> (8 * byte)));
}

template <class T>
T take_big_endian(std::string_view& key) {
  T value = 0;
  for (std::size_t byte = 0; byte < sizeof value && byte < key.size(); ++byte)
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(key[byte]));
  key.remove_prefix(std::min(sizeof value, key.size()));
  return value;
}

inline std::string queue_key(char kind, std::uint32_t number) {
  std::string key(1, kind);
  append_big_endian(key, number);
  return key;
}

inline std::string day_key(char kind, std::int64_t day) {
  std::string key(1, kind);
  append_big_endian(key, static_cast<std::uint32_t>(day));
  return key;
}

// A point's key: [kind][day][queue][minute of the day, or number of the five minutes].
inline std::string point_key(char kind, std::int64_t day, std::uint32_t number, Minute of_day) {
  std::string key = day_key(kind, day);
  append_big_endian(key, number);
  append_big_endian(key, static_cast<std::uint16_t>(of_day));
  return key;
}

struct PointName {
  std::int64_t day;
  std::uint32_t number;
  Minute of_day;
};
inline constexpr std::size_t kPointKeySize = 1 + 4 + 4 + 2;

// REQUIRES: the key is as long as that of a point.
inline PointName parse_point_key(std::string_view key) {
  key.remove_prefix(1);
  PointName name{};
  name.day = take_big_endian<std::uint32_t>(key);
  name.number = take_big_endian<std::uint32_t>(key);
  name.of_day = take_big_endian<std::uint16_t>(key);
  return name;
}

inline std::int64_t day_of(Minute minute) {
  return minute / kMinutesADay;
}

}  // namespace stanchion::history

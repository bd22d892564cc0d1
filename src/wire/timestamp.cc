#include "wire/timestamp.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace stanchion::wire {
namespace {

constexpr double kSecondsMax = 253'402'300'799;  // The last second of the year 9999.

// Takes the parts of a date one after the other; after the first mistake it stays wrong.
class Parts {
 public:
  explicit Parts(std::string_view text) : rest_(text) {}

  // The next `digits` characters as a number, between `min` and `max`.
  int number(std::size_t digits, int min, int max) {
    const auto value =
        rest_.size() < digits ? std::nullopt : parse_decimal(rest_.substr(0, digits));
    if (!value || *value < static_cast<unsigned>(min) || *value > static_cast<unsigned>(max)) {
      ok_ = false;
      return min;
    }
    rest_.remove_prefix(digits);
    return static_cast<int>(*value);
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { ok_ = take(c) && ok_; }

  double fraction() {
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    double value = 0;
    double unit = 0.1;
    for (const char c : rest_.substr(0, digits)) {
      value += (c - '0') * unit;
      unit /= 10;
    }
    ok_ = ok_ && digits > 0;
    rest_.remove_prefix(digits);
    return value;
  }
  bool at_end() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// The seconds of a day, less the offset of the place.
double time_of_day(Parts& parts) {
  double seconds = 3'600.0 * parts.number(2, 0, 23);
  parts.expect(':');
  seconds += 60.0 * parts.number(2, 0, 59);
  if (parts.take(':')) {
    seconds += parts.number(2, 0, 60);
    if (parts.take('.')) seconds += parts.fraction();
  }
  if (parts.take('Z') || parts.at_end()) return seconds;
  const bool east = parts.take('+');
  if (!east) parts.expect('-');
  double offset = 3'600.0 * parts.number(2, 0, 23);
  parts.take(':');
  offset += 60.0 * parts.number(2, 0, 59);
  return east ? seconds - offset : seconds + offset;
}

}  // namespace

std::optional<Instant> date_time_of(double seconds) {
  if (!(seconds >= 0) || seconds > kSecondsMax) return std::nullopt;
  return from_millis(std::llround(seconds * 1'000));
}

std::optional<Instant> parse_date_time(std::string_view text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, seconds);
  if (problem == std::errc() && stop == end) return date_time_of(seconds);
  Parts parts(text);
  const int year = parts.number(4, 1970, 9999);
  parts.expect('-');
  const int month = parts.number(2, 1, 12);
  parts.expect('-');
  const int day = parts.number(2, 1, 31);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!parts.ok() || !date.ok()) return std::nullopt;
  seconds = 86'400.0 * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (!parts.at_end()) {
    if (!parts.take('T')) parts.expect(' ');
    seconds += time_of_day(parts);
  }
  if (!parts.ok() || !parts.at_end()) return std::nullopt;
  return date_time_of(seconds);
}

std::string format_date_time(Instant at) {
  using std::chrono::days;
  const std::chrono::sys_seconds seconds{std::chrono::seconds(to_seconds(at))};
  const auto day = std::chrono::floor<days>(seconds);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{seconds - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, time.hours().count(),
                     time.minutes().count(), time.seconds().count());
}

}  // namespace stanchion::wire

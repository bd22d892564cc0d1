#include "policy/condition.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace stanchion::policy {
namespace {

struct NamedOperator {
  std::string_view name;
  ConditionTest test;
  bool negated;
};

constexpr std::array kOperators{
    NamedOperator{"StringEquals", ConditionTest::kStringEquals, false},
    NamedOperator{"StringNotEquals", ConditionTest::kStringEquals, true},
    NamedOperator{"StringEqualsIgnoreCase", ConditionTest::kStringEqualsIgnoreCase, false},
    NamedOperator{"StringNotEqualsIgnoreCase", ConditionTest::kStringEqualsIgnoreCase, true},
    NamedOperator{"StringLike", ConditionTest::kStringLike, false},
    NamedOperator{"StringNotLike", ConditionTest::kStringLike, true},
    NamedOperator{"ArnEquals", ConditionTest::kArnLike, false},
    NamedOperator{"ArnNotEquals", ConditionTest::kArnLike, true},
    NamedOperator{"ArnLike", ConditionTest::kArnLike, false},
    NamedOperator{"ArnNotLike", ConditionTest::kArnLike, true},
    NamedOperator{"BinaryEquals", ConditionTest::kBinaryEquals, false},
    NamedOperator{"Bool", ConditionTest::kBool, false},
    NamedOperator{"Null", ConditionTest::kNull, false},
    NamedOperator{"IpAddress", ConditionTest::kIpAddress, false},
    NamedOperator{"NotIpAddress", ConditionTest::kIpAddress, true},
    NamedOperator{"NumericEquals", ConditionTest::kNumericEquals, false},
    NamedOperator{"NumericNotEquals", ConditionTest::kNumericEquals, true},
    NamedOperator{"NumericLessThan", ConditionTest::kNumericLessThan, false},
    NamedOperator{"NumericLessThanEquals", ConditionTest::kNumericLessThanEquals, false},
    NamedOperator{"NumericGreaterThan", ConditionTest::kNumericGreaterThan, false},
    NamedOperator{"NumericGreaterThanEquals", ConditionTest::kNumericGreaterThanEquals, false},
    NamedOperator{"DateEquals", ConditionTest::kDateEquals, false},
    NamedOperator{"DateNotEquals", ConditionTest::kDateEquals, true},
    NamedOperator{"DateLessThan", ConditionTest::kDateLessThan, false},
    NamedOperator{"DateLessThanEquals", ConditionTest::kDateLessThanEquals, false},
    NamedOperator{"DateGreaterThan", ConditionTest::kDateGreaterThan, false},
    NamedOperator{"DateGreaterThanEquals", ConditionTest::kDateGreaterThanEquals, false},
};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (text.empty() || stop != end || problem != std::errc() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Parses digits of a fixed width at the front of `text`, then `separator` unless it is 0.
std::optional<int> take_digits(std::string_view& text, std::size_t width, char separator) {
  const auto value = parse_decimal(text.substr(0, width));
  if (!value || text.size() < width) return std::nullopt;
  text.remove_prefix(width);
  if (separator != 0) {
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(1);
  }
  return static_cast<int>(*value);
}

// Takes "2026", "-08" and "-01" from the front of a date; the day, and the month, may be missing.
std::optional<double> take_day(std::string_view& text) {
  const auto year = take_digits(text, 4, 0);
  std::optional<int> month = 1, day = 1;
  if (take_prefix(text, "-")) {
    month = take_digits(text, 2, 0);
    if (take_prefix(text, "-")) day = take_digits(text, 2, 0);
  }
  if (!year || !month || !day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return 86400.0 * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
}

// Takes "12:30", "12:30:59" or "12:30:59.25", in seconds.
std::optional<double> take_time_of_day(std::string_view& text) {
  const auto hour = take_digits(text, 2, ':');
  const auto minute = take_digits(text, 2, 0);
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  const double minutes = *hour * 3600.0 + *minute * 60.0;
  if (!take_prefix(text, ":")) return minutes;
  const auto second = take_digits(text, 2, 0);
  if (!second || *second > 60) return std::nullopt;
  double fraction = 0;
  if (text.starts_with('.')) {
    const std::size_t end = std::min(text.find_first_of("Z+-"), text.size());
    const auto digits = parse_number(text.substr(0, end));
    if (!digits || *digits >= 1) return std::nullopt;
    fraction = *digits;
    text.remove_prefix(end);
  }
  return minutes + *second + fraction;
}

// "Z", "+02:00" or "-08:00", in seconds east of Greenwich.
std::optional<double> parse_zone(std::string_view text) {
  if (text == "Z") return 0;
  const bool west = text.starts_with('-');
  if (!west && !text.starts_with('+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hours = take_digits(text, 2, ':');
  const auto minutes = take_digits(text, 2, 0);
  if (!hours || !minutes || *hours > 23 || *minutes > 59 || !text.empty()) return std::nullopt;
  return (west ? -60.0 : 60.0) * (*hours * 60 + *minutes);
}

// Seconds since 1970, from a number of them, or from what the W3C's profile of ISO 8601 allows. (So
// a year by itself is a number of seconds.)
std::optional<double> parse_date(std::string_view text) {
  if (const auto seconds = parse_number(text)) return seconds;
  const std::string_view whole = text;
  const auto midnight = take_day(text);
  if (!midnight || text.empty()) return midnight;
  const bool has_day = whole.size() - text.size() == std::string_view("2026-08-01").size();
  if (!has_day || !take_prefix(text, "T")) return std::nullopt;
  const auto time = take_time_of_day(text);
  const auto east = parse_zone(text);
  if (!time || !east) return std::nullopt;
  return *midnight + *time - *east;
}

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t size = 0;  // 4 or 16.
};

std::optional<Address> parse_address(std::string_view text) {
  const std::string terminated(text);
  Address address;
  if (inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1)
    address.size = 4;
  else if (inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1)
    address.size = 16;
  else
    return std::nullopt;
  // Makes an IPv4 address the same whether it is written as IPv4 or as IPv6.
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (address.size == 16 && std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) {
    std::copy_n(address.bytes.begin() + kMapped.size(), 4, address.bytes.begin());
    address.size = 4;
  }
  // inet_pton stops at a NUL, so a text with a NUL must be rejected here.
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  return address;
}

struct AddressRange {
  Address base;
  std::size_t bits;
};

std::optional<AddressRange> parse_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto base = parse_address(text.substr(0, slash));
  if (!base) return std::nullopt;
  if (slash == std::string_view::npos) return AddressRange{*base, base->size * 8};
  auto bits = parse_decimal(text.substr(slash + 1));
  constexpr std::uint64_t kMappedBits = 96;
  if (bits && base->size == 4 && text.find(':') != std::string_view::npos)
    bits = *bits < kMappedBits ? std::nullopt : std::optional(*bits - kMappedBits);
  if (!bits || *bits > base->size * 8) return std::nullopt;
  return AddressRange{*base, static_cast<std::size_t>(*bits)};
}

bool is_in_range(std::string_view range_text, std::string_view address_text) {
  const auto range = parse_range(range_text);
  const auto address = parse_address(address_text);
  if (!range || !address || range->base.size != address->size) return false;
  for (std::size_t bit = 0; bit < range->bits; ++bit) {
    const int difference = range->base.bytes[bit / 8] ^ address->bytes[bit / 8];
    if ((difference >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

template <class Compare>
bool compare_with(std::optional<double> held, std::optional<double> wanted,
                  const Compare& compare) {
  return held && wanted && compare(*held, *wanted);
}

bool passes(ConditionTest test, const PolicyText& value, std::string_view held,
            const PolicyContext& context) {
  const std::string_view wanted = value.as_written();
  const auto text = [&](const auto& compare) {
    Pattern room;
    const Pattern* const pattern = value.resolve(context, held.size(), room);
    return pattern != nullptr && compare(*pattern, held);
  };
  const auto numbers = [&](const auto& compare) {
    return compare_with(parse_number(held), parse_number(wanted), compare);
  };
  const auto dates = [&](const auto& compare) {
    return compare_with(parse_date(held), parse_date(wanted), compare);
  };
  switch (test) {
    case ConditionTest::kStringEquals:
      return text(spells);
    case ConditionTest::kStringEqualsIgnoreCase:
      return text(spells_ignoring_ascii_case);
    case ConditionTest::kStringLike:
      return text(matches);
    case ConditionTest::kArnLike:
      return text(matches_arn);
    case ConditionTest::kBinaryEquals:
      return from_base64(wanted) == held;
    case ConditionTest::kBool:
      return equals_ignoring_ascii_case(held, wanted);
    case ConditionTest::kIpAddress:
      return is_in_range(wanted, held);
    case ConditionTest::kNumericEquals:
      return numbers(std::equal_to<>());
    case ConditionTest::kNumericLessThan:
      return numbers(std::less<>());
    case ConditionTest::kNumericLessThanEquals:
      return numbers(std::less_equal<>());
    case ConditionTest::kNumericGreaterThan:
      return numbers(std::greater<>());
    case ConditionTest::kNumericGreaterThanEquals:
      return numbers(std::greater_equal<>());
    case ConditionTest::kDateEquals:
      return dates(std::equal_to<>());
    case ConditionTest::kDateLessThan:
      return dates(std::less<>());
    case ConditionTest::kDateLessThanEquals:
      return dates(std::less_equal<>());
    case ConditionTest::kDateGreaterThan:
      return dates(std::greater<>());
    case ConditionTest::kDateGreaterThanEquals:
      return dates(std::greater_equal<>());
    case ConditionTest::kNull:
      return false;  // Decided in holds(), by whether there is a value.
  }
  return false;
}

}  // namespace

std::optional<ConditionOperator> parse_operator(std::string_view name) {
  ConditionOperator op{};
  if (take_prefix(name, "ForAllValues:"))
    op.quantifier = Quantifier::kForAllValues;
  else if (take_prefix(name, "ForAnyValue:"))
    op.quantifier = Quantifier::kForAnyValue;
  if (constexpr std::string_view kSuffix = "IfExists"; name.ends_with(kSuffix)) {
    op.if_exists = true;
    name.remove_suffix(kSuffix.size());
  }
  const auto found = std::ranges::find(kOperators, name, &NamedOperator::name);
  if (found == kOperators.end()) return std::nullopt;
  op.test = found->test;
  op.negated = found->negated;
  if (op.test == ConditionTest::kNull && (op.if_exists || op.quantifier != Quantifier::kNone))
    return std::nullopt;
  return op;
}

bool takes_value(ConditionTest test, std::string_view value) {
  switch (test) {
    case ConditionTest::kStringEquals:
    case ConditionTest::kStringEqualsIgnoreCase:
    case ConditionTest::kStringLike:
    case ConditionTest::kArnLike:
      return true;
    case ConditionTest::kBinaryEquals:
      return from_base64(value).has_value();
    case ConditionTest::kBool:
    case ConditionTest::kNull:
      return equals_ignoring_ascii_case(value, "true") ||
             equals_ignoring_ascii_case(value, "false");
    case ConditionTest::kIpAddress:
      return parse_range(value).has_value();
    case ConditionTest::kNumericEquals:
    case ConditionTest::kNumericLessThan:
    case ConditionTest::kNumericLessThanEquals:
    case ConditionTest::kNumericGreaterThan:
    case ConditionTest::kNumericGreaterThanEquals:
      return parse_number(value).has_value();
    case ConditionTest::kDateEquals:
    case ConditionTest::kDateLessThan:
    case ConditionTest::kDateLessThanEquals:
    case ConditionTest::kDateGreaterThan:
    case ConditionTest::kDateGreaterThanEquals:
      return parse_date(value).has_value();
  }
  return false;
}

bool takes_variables(ConditionTest test) {
  return test == ConditionTest::kStringEquals || test == ConditionTest::kStringEqualsIgnoreCase ||
         test == ConditionTest::kStringLike || test == ConditionTest::kArnLike;
}

std::size_t steps_of(const PolicyCondition& condition, const PolicyContext& context) {
  constexpr std::size_t kPreparation = 32;  // Of a word of states.
  constexpr std::size_t kBits = 64;
  const auto found = context.find(condition.key);
  if (found == context.end()) return 0;
  std::size_t steps = 0;
  for (const std::string& held : found->second) {
    for (const PolicyText& value : condition.values) {
      const std::size_t put_in = value.has_variables() ? held.size() : 0;
      const std::size_t words = (value.as_written().size() + put_in) / kBits + 1;
      steps += words * (held.size() + kPreparation);
    }
  }
  return steps;
}

bool holds(const PolicyCondition& condition, const PolicyContext& context) {
  const ConditionOperator& op = condition.op;
  const auto found = context.find(condition.key);
  const bool absent = found == context.end() || found->second.empty();
  if (op.test == ConditionTest::kNull)
    return std::ranges::any_of(condition.values, [&](const PolicyText& wanted) {
      return equals_ignoring_ascii_case(wanted.as_written(), "true") == absent;
    });
  if (absent) {
    if (op.if_exists || op.quantifier == Quantifier::kForAllValues) return true;
    return op.negated && op.quantifier == Quantifier::kNone;
  }
  // With a negated operator no value may match: its values are joined by "nor", not by "or".
  const auto satisfied = [&](const std::string& held) {
    return op.negated != std::ranges::any_of(condition.values, [&](const PolicyText& wanted) {
             return passes(op.test, wanted, held, context);
           });
  };
  const bool every = op.quantifier == Quantifier::kForAllValues ||
                     (op.quantifier == Quantifier::kNone && op.negated);
  return every ? std::ranges::all_of(found->second, satisfied)
               : std::ranges::any_of(found->second, satisfied);
}

}  // namespace stanchion::policy

#include "wire/cbor.h"

#include <fmt/format.h>

#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/text.h"
#include "wire/limits.h"

namespace stanchion::wire {
namespace {

namespace json = boost::json;

constexpr unsigned kUnsigned = 0, kNegative = 1, kBytes = 2, kText = 3, kArray = 4, kMap = 5,
                   kTag = 6, kSimple = 7;
constexpr unsigned kIndefinite = 31;
constexpr unsigned char kBreak = 0xFF;

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  double value = 0;
  if (exponent == 0)
    value = std::ldexp(mantissa, -24);
  else if (exponent == 31)
    value = mantissa == 0 ? INFINITY : NAN;
  else
    value = std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -value : value;
}

// After the first mistake the reader is failed, and every call returns at once.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : in_(bytes) {}

  Answer<json::value> read() {
    json::value value = next(0);
    if (!error_ && !in_.empty()) wrong("something follows the value");
    if (error_) return refuse(ErrorCode::kMalformedInput, "CBOR: " + *error_);
    return value;
  }

 private:
  struct Head {
    unsigned major = 0;
    unsigned info = 0;
    std::uint64_t argument = 0;
    bool indefinite() const { return info == kIndefinite; }
  };

  json::value next(std::size_t depth) {
    if (depth > kJsonDepthMax) return wrong("the values are nested too deeply");
    if (++values_ > kCloudwatchValuesMax)
      return wrong(fmt::format("there are more than {} values", kCloudwatchValuesMax));
    const Head head = read_head();
    if (error_) return nullptr;
    switch (head.major) {
      case kUnsigned:
        if (head.argument > INT64_MAX) return static_cast<double>(head.argument);
        return static_cast<std::int64_t>(head.argument);
      case kNegative:
        if (head.argument > INT64_MAX) return -1 - static_cast<double>(head.argument);
        return -1 - static_cast<std::int64_t>(head.argument);
      case kBytes:
      case kText:
        return string_of(head);
      case kArray:
        return array_of(head, depth);
      case kMap:
        return map_of(head, depth);
      case kTag:
        return next(depth + 1);
      default:
        return simple_of(head);
    }
  }

  Head read_head() {
    Head head;
    const unsigned first = byte();
    head.major = first >> 5;
    head.info = first & 31;
    head.argument = head.info;
    if (head.info < 24) return head;
    if (head.info < 28) {
      head.argument = big_endian(std::size_t{1} << (head.info - 24));
    } else if (!head.indefinite() || head.major <= kNegative || head.major == kTag) {
      wrong("a value has a length that means nothing");
    }
    return head;
  }

  json::value simple_of(const Head& head) {
    switch (head.info) {
      case 20:
        return false;
      case 21:
        return true;
      case 22:
      case 23:
        return nullptr;
      case 25:
        return real(half_to_double(static_cast<std::uint16_t>(head.argument)));
      case 26:
        return real(std::bit_cast<float>(static_cast<std::uint32_t>(head.argument)));
      case 27:
        return real(std::bit_cast<double>(head.argument));
      default:
        return wrong("a simple value is not known");
    }
  }

  json::value real(double value) {
    return std::isfinite(value) ? json::value(value) : wrong("a number is not finite");
  }

  json::value string_of(const Head& head) {
    std::string text;
    if (!head.indefinite()) {
      text = raw(head.argument);
    } else {
      while (!error_ && !at_break()) {
        const Head part = read_head();
        if (part.major != head.major || part.indefinite())
          return wrong("a part of a string is not one");
        text += raw(part.argument);
        if (++values_ > kCloudwatchValuesMax) return wrong("a string has too many parts");
      }
    }
    if (!is_utf8(text)) return wrong("a text is not UTF-8");
    return json::value(text);
  }

  json::value array_of(const Head& head, std::size_t depth) {
    json::array array;
    for (std::uint64_t i = 0; !error_ && more(head, i); ++i) array.push_back(next(depth + 1));
    return array;
  }

  json::value map_of(const Head& head, std::size_t depth) {
    json::object object;
    for (std::uint64_t i = 0; !error_ && more(head, i); ++i) {
      const Head key = read_head();
      if (error_) break;
      if (key.major != kText) return wrong("the key of a map is not a text");
      const json::value name = string_of(key);
      json::value value = next(depth + 1);
      if (error_) break;
      if (!object.emplace(name.as_string(), std::move(value)).second)
        return wrong("a map has a key twice");
    }
    return object;
  }

  // Whether an array or map has a further element.
  bool more(const Head& head, std::uint64_t read) {
    return head.indefinite() ? !at_break() : read < head.argument;
  }

  // Takes the break, if it is next.
  bool at_break() {
    if (in_.empty()) {
      wrong("the bytes end too early");
      return true;
    }
    if (static_cast<unsigned char>(in_.front()) != kBreak) return false;
    in_.remove_prefix(1);
    return true;
  }

  unsigned byte() { return static_cast<unsigned>(big_endian(1)); }

  std::uint64_t big_endian(std::size_t size) {
    std::uint64_t value = 0;
    for (const char c : raw(size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view raw(std::uint64_t size) {
    if (size > in_.size()) {
      wrong("the bytes end too early");
      in_ = {};
      return {};
    }
    const std::string_view taken = in_.substr(0, static_cast<std::size_t>(size));
    in_.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }

  json::value wrong(std::string what) {
    if (!error_) error_ = std::move(what);
    return nullptr;
  }

  std::string_view in_;
  std::size_t values_ = 0;
  std::optional<std::string> error_;
};

}  // namespace

Answer<json::value> decode_cbor(std::string_view bytes) {
  return Reader(bytes).read();
}

std::string CborWriter::head_of(unsigned major, std::uint64_t argument) {
  std::string head;
  const auto begin = [&](unsigned info) { head.push_back(static_cast<char>(major << 5 | info)); };
  if (argument < 24) {
    begin(static_cast<unsigned>(argument));
    return head;
  }
  const int power = argument <= UINT8_MAX    ? 0
                    : argument <= UINT16_MAX ? 1
                    : argument <= UINT32_MAX ? 2
                                             : 3;
  begin(24U + static_cast<unsigned>(power));
  for (int byte = (1 << power) - 1; byte >= 0; --byte)
    head.push_back(static_cast<char>(argument >> (8 * byte)));
  return head;
}

void CborWriter::head(unsigned major, std::uint64_t argument) {
  out_ += head_of(major, argument);
}

// The head is put before the members when their number is known; only the map itself is moved.
void CborWriter::close_map() {
  CHECK(!open_.empty(), "a map that is closed was opened");
  out_.insert(open_.back().begin, head_of(kMap, open_.back().members));
  open_.pop_back();
}

void CborWriter::key(std::string_view name) {
  CHECK(!open_.empty(), "a member belongs to a map");
  ++open_.back().members;
  text(name);
}

void CborWriter::text(std::string_view value) {
  head(kText, value.size());
  out_ += value;
}

void CborWriter::real(double value) {
  out_.push_back(static_cast<char>(kSimple << 5 | 27));
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int byte = 7; byte >= 0; --byte) out_.push_back(static_cast<char>(bits >> (8 * byte)));
}

void CborWriter::timestamp(Instant at) {
  head(kTag, 1);
  if (to_millis(at) % 1'000 == 0 && to_millis(at) >= 0)
    head(kUnsigned, static_cast<std::uint64_t>(to_seconds(at)));
  else
    real(static_cast<double>(to_millis(at)) / 1'000);
}

}  // namespace stanchion::wire

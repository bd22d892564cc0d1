#include "wire/sigv4_canonical.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/check.h"
#include "wire/query_parameters.h"

namespace stanchion::wire {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.' || c == '~';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Trims white space at both ends, and replaces each run of it inside by one space.
void append_trimmed(std::string& out, std::string_view value) {
  bool pending = false;
  const std::size_t start = out.size();
  for (const char c : value) {
    if (is_blank(c)) {
      pending = out.size() != start;
      continue;
    }
    if (pending) out += ' ';
    pending = false;
    out += c;
  }
}

void append_header(std::string& out, const HttpCall& call, std::string_view lower_name) {
  out.append(lower_name).append(":");
  bool first = true;
  for (const auto& [name, value] : call.headers) {
    if (name.size() != lower_name.size() || !equals_ignoring_ascii_case(name, lower_name)) continue;
    if (!first) out += ',';
    first = false;
    append_trimmed(out, value);
  }
  out += '\n';
}

std::optional<int> two_digits(std::string_view text, std::size_t at) {
  const auto value = parse_decimal(text.substr(at, 2));
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

struct Civil {
  int year, month, day, hour, minute, second;
};

std::optional<Instant> to_instant(const Civil& c) {
  using namespace std::chrono;
  const year_month_day date(year(c.year), month(static_cast<unsigned>(c.month)),
                            day(static_cast<unsigned>(c.day)));
  if (!date.ok() || c.hour > 23 || c.minute > 59 || c.second > 60) return std::nullopt;
  const auto since =
      sys_days(date).time_since_epoch() + hours(c.hour) + minutes(c.minute) + seconds(c.second);
  return Instant(duration_cast<Duration>(since));
}

// HH, MM and SS at three places of `text`.
std::optional<Instant> with_time(Civil date, std::string_view text, std::size_t hour_at,
                                 std::size_t minute_at, std::size_t second_at) {
  const auto hour = two_digits(text, hour_at);
  const auto minute = two_digits(text, minute_at);
  const auto second = two_digits(text, second_at);
  if (!hour || !minute || !second) return std::nullopt;
  date.hour = *hour;
  date.minute = *minute;
  date.second = *second;
  return to_instant(date);
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

void append_percent_encoded(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

std::string canonical_path(std::string_view path) {
  std::vector<std::string_view> kept;
  const auto segments = split(path, '/');
  for (const std::string_view segment : segments) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..")
      kept.push_back(segment);
    else if (!kept.empty())
      kept.pop_back();
  }
  std::string out;
  for (const std::string_view segment : kept) {
    out += '/';
    append_percent_encoded(out, segment);
  }
  const std::string_view last = segments.back();
  if (kept.empty() || last.empty() || last == "." || last == "..") out += '/';
  return out;
}

std::optional<std::string> canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view part : split(query, '&')) {
    if (part.empty()) continue;
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto name = percent_decode(part.substr(0, equals), true);
    const auto value = percent_decode(part.substr(std::min(equals + 1, part.size())), true);
    if (!name || !value) return std::nullopt;
    if (*name == kSignatureParameter) continue;
    auto& pair = pairs.emplace_back();
    append_percent_encoded(pair.first, *name);
    append_percent_encoded(pair.second, *value);
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += '&';
    out.append(name).append("=").append(value);
  }
  return out;
}

std::string canonical_request(const HttpCall& call, std::string_view query,
                              const std::vector<std::string_view>& signed_headers,
                              std::string_view payload_hash) {
  std::string out;
  out.reserve(512);
  out.append(call.method).append("\n").append(canonical_path(call.path())).append("\n");
  out.append(query).append("\n");
  for (const std::string_view name : signed_headers) append_header(out, call, name);
  out += '\n';
  for (std::size_t i = 0; i < signed_headers.size(); ++i) {
    if (i != 0) out += ';';
    out += signed_headers[i];
  }
  return out.append("\n").append(payload_hash);
}

std::string string_to_sign(std::string_view timestamp, std::string_view scope,
                           std::string_view canonical) {
  return fmt::format("{}\n{}\n{}\n{}", kAlgorithm, timestamp, scope,
                     to_hex(as_text(sha256(canonical))));
}

Sha256 derive_signing_key(std::string_view secret, std::string_view scope) {
  const auto parts = split(scope, '/');
  CHECK(parts.size() == 4, "a scope is date/region/service/aws4_request");
  Sha256 key = hmac_sha256(fmt::format("AWS4{}", secret), parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) key = hmac_sha256(as_text(key), parts[i]);
  return key;
}

std::string format_timestamp(Instant instant) {
  using namespace std::chrono;
  const auto whole = floor<seconds>(instant.time_since_epoch());
  const auto midnight = floor<days>(whole);
  const year_month_day date{sys_days(midnight)};
  const hh_mm_ss time(whole - midnight);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count());
}

std::optional<Instant> parse_timestamp(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  const auto year = parse_decimal(text.substr(0, 4));
  const auto month = two_digits(text, 4), day = two_digits(text, 6);
  if (!year || !month || !day) return std::nullopt;
  return with_time({static_cast<int>(*year), *month, *day, 0, 0, 0}, text, 9, 11, 13);
}

std::optional<Instant> parse_http_date(std::string_view text) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || !text.ends_with(" GMT"))
    return std::nullopt;
  const auto day = two_digits(text, 5);
  const auto year = parse_decimal(text.substr(12, 4));
  const auto month = std::ranges::find(kMonths, text.substr(8, 3));
  if (!day || !year || month == kMonths.end()) return std::nullopt;
  const int month_number = static_cast<int>(month - kMonths.begin()) + 1;
  return with_time({static_cast<int>(*year), month_number, *day, 0, 0, 0}, text, 17, 20, 23);
}

}  // namespace stanchion::wire

#include "wire/query_parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scan.h"
#include "base/text.h"
#include "wire/limits.h"

namespace stanchion::wire {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::unexpected<Error> malformed(std::string message) {
  return refuse(ErrorCode::kMalformedInput, std::move(message));
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char* const stop = find_byte(
        text.data(), text.data() + text.size(),
        [](Bytes bytes) { return bytes_equal(bytes, '%') | bytes_equal(bytes, '+'); },
        [](unsigned char byte) { return byte == '%' || byte == '+'; });
    const auto run = static_cast<std::size_t>(stop - text.data());
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) break;
    if (text.front() == '+') {
      out.push_back(plus_is_space ? ' ' : '+');
      text.remove_prefix(1);
      continue;
    }
    if (text.size() < 3) return std::nullopt;
    const int high = hex_digit(text[1]), low = hex_digit(text[2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
    text.remove_prefix(3);
  }
  return out;
}

Answer<QueryParameters> QueryParameters::parse(std::string_view url_query, std::string_view body,
                                               std::size_t most) {
  QueryParameters parameters;
  for (const std::string_view form : {url_query, body})
    if (auto added = parameters.add(form, most); !added)
      return std::unexpected(std::move(added).error());
  auto& sorted = parameters.sorted_;
  std::ranges::stable_sort(sorted, {}, &Parameter::name);
  // Keep the last parameter of each name: in reverse order it is the first.
  const auto extra = std::unique(sorted.rbegin(), sorted.rend(),
                                 [](const auto& a, const auto& b) { return a.name == b.name; });
  sorted.erase(sorted.begin(), extra.base());
  return parameters;
}

Answer<void> QueryParameters::add(std::string_view form, std::size_t most) {
  while (!form.empty()) {
    const std::string_view pair = form.substr(0, form.find('&'));
    form.remove_prefix(std::min(pair.size() + 1, form.size()));
    if (pair.empty()) continue;
    if (sorted_.size() == most)
      return malformed(fmt::format("The request has more than {} parameters", most));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return malformed("A percent sign is not followed by two digits");
    if (!is_utf8(*name)) return malformed("The name of a parameter is not UTF-8");
    if (!is_utf8(*value))
      return malformed(fmt::format("The value of parameter {} is not UTF-8", *name));
    sorted_.push_back({*std::move(name), *std::move(value)});
  }
  return {};
}

std::vector<QueryParameters::Parameter>::const_iterator QueryParameters::lower_bound(
    std::string_view name) const {
  return std::ranges::lower_bound(sorted_, name, {},
                                  [](const Parameter& p) { return std::string_view(p.name); });
}

const std::string* QueryParameters::find(std::string_view name) const {
  const auto at = lower_bound(name);
  return at != sorted_.end() && at->name == name ? &at->value : nullptr;
}

bool QueryParameters::has_any(std::string_view name) const {
  const std::string below = fmt::format("{}.", name);
  const auto at = lower_bound(below);
  return find(name) != nullptr || (at != sorted_.end() && at->name.starts_with(below));
}

std::vector<std::string> QueryParameters::elements(std::string_view name) const {
  const std::string below = fmt::format("{}.", name);
  bool bare = find(name) != nullptr;
  std::vector<std::uint64_t> indexes;
  for (auto at = lower_bound(below); at != sorted_.end() && at->name.starts_with(below); ++at) {
    std::string_view rest(at->name);
    rest.remove_prefix(below.size());
    const std::string_view segment = rest.substr(0, rest.find('.'));
    // An index may be written in only one way, so that every element has one prefix.
    const auto index = segment.starts_with('0') ? std::nullopt : parse_decimal(segment);
    if (!index)
      bare = true;
    else if (indexes.empty() || indexes.back() != *index)
      indexes.push_back(*index);
  }
  std::ranges::sort(indexes);
  indexes.erase(std::ranges::unique(indexes).begin(), indexes.end());
  std::vector<std::string> prefixes;
  if (bare) prefixes.emplace_back(name);
  for (const std::uint64_t index : indexes) prefixes.push_back(fmt::format("{}{}", below, index));
  return prefixes;
}

}  // namespace stanchion::wire

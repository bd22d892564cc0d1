#include "runner/filter.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json_members.h"
#include "base/text.h"

namespace stanchion::runner {
namespace {

namespace json = boost::json;

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

std::optional<double> number_in(const json::value& value) {
  if (!value.is_number()) return std::nullopt;
  return value.to_number<double>();
}

// '*' stands for any text; "\*" and "\\" for themselves.
bool matches_wildcard(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::pair<std::size_t, std::size_t>> star;  // Where to go on with more of the text.
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = {++p, t};
      continue;
    }
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    const std::size_t width = escaped ? 2 : 1;
    if (p < pattern.size() && t < text.size() && pattern[p + width - 1] == text[t]) {
      p += width;
      ++t;
      continue;
    }
    if (p == pattern.size() && t == text.size()) return true;
    if (!star || star->second >= text.size()) return false;
    t = ++star->second;
    p = star->first;
  }
}

struct Address {
  int bits = 0;
  std::array<std::uint8_t, 16> bytes{};
};

std::optional<Address> parse_address(const std::string& text) {
  Address address{.bits = 32};
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) return address;
  address.bits = 128;
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  return std::nullopt;
}

bool in_network(std::string_view network, std::string_view text) {
  const std::size_t slash = network.find('/');
  const auto base = parse_address(std::string(network.substr(0, slash)));
  const auto address = parse_address(std::string(text));
  const auto length = parse_decimal(network.substr(slash + 1));
  if (!base || !address || !length || base->bits != address->bits) return false;
  for (std::uint64_t bit = 0; bit < *length; ++bit) {
    const int mask = 0x80 >> (bit % 8);
    if ((base->bytes[bit / 8] & mask) != (address->bytes[bit / 8] & mask)) return false;
  }
  return true;
}

// Numbers are equal by value, everything else only if the type is the same.
bool equals(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) return number_in(a) == number_in(b);
  return a == b;
}

bool compares(double value, std::string_view operation, double with) {
  if (operation == "=") return value == with;
  if (operation == "<") return value < with;
  if (operation == "<=") return value <= with;
  if (operation == ">") return value > with;
  return value >= with;
}

// An operator on text: {"prefix":"a"} or {"prefix":{"equals-ignore-case":"A"}}.
bool text_matches(std::string_view name, const json::value& operand, std::string_view text) {
  const bool ignoring = operand.is_object();
  const std::string_view wanted =
      view(ignoring ? operand.get_object().begin()->value().get_string() : operand.get_string());
  const auto same = [&](std::string_view a) {
    return ignoring ? equals_ignoring_ascii_case(a, wanted) : a == wanted;
  };
  if (name == "prefix") return text.size() >= wanted.size() && same(text.substr(0, wanted.size()));
  if (name == "suffix")
    return text.size() >= wanted.size() && same(text.substr(text.size() - wanted.size()));
  if (name == "equals-ignore-case") return equals_ignoring_ascii_case(text, wanted);
  if (name == "wildcard") return matches_wildcard(wanted, text);
  return in_network(wanted, text);
}

bool is_any(std::string_view name, const json::value& operand, const json::value& value) {
  const auto one = [&](const json::value& each) {
    if (name.empty()) return equals(each, value);
    return value.is_string() && text_matches(name, each, view(value.get_string()));
  };
  if (!operand.is_array()) return one(operand);
  return std::ranges::any_of(operand.get_array(), one);
}

bool operator_matches(const json::object& rule, const json::value& value) {
  const std::string_view name = rule.begin()->key();
  const json::value& operand = rule.begin()->value();
  if (name == "exists") return operand.get_bool();
  if (name == "anything-but") {
    if (!operand.is_object()) return !is_any({}, operand, value);
    const auto& inner = *operand.get_object().begin();
    return !is_any(inner.key(), inner.value(), value);
  }
  if (name == "numeric") {
    const auto number = number_in(value);
    const json::array& list = operand.get_array();
    for (std::size_t i = 0; number && i < list.size(); i += 2)
      if (!compares(*number, view(list[i].get_string()), *number_in(list[i + 1]))) return false;
    return number.has_value();
  }
  return value.is_string() && text_matches(name, operand, view(value.get_string()));
}

bool value_matches(const json::value& rule, const json::value& value) {
  return rule.is_object() ? operator_matches(rule.get_object(), value) : equals(rule, value);
}

bool wants_absence(const json::value& rule) {
  if (!rule.is_object()) return false;
  const auto& only = *rule.get_object().begin();
  return only.key() == "exists" && !only.value().get_bool();
}

// `value` null: the member is missing.
bool list_matches(const json::array& rules, const json::value* value) {
  if (value == nullptr) return std::ranges::any_of(rules, wants_absence);
  if (value->is_array())
    return std::ranges::any_of(value->get_array(), [&](const json::value& element) {
      return list_matches(rules, &element);
    });
  return std::ranges::any_of(rules, [&](const json::value& rule) {
    return !wants_absence(rule) && value_matches(rule, *value);
  });
}

bool object_matches(const json::object& pattern, const json::value* value) {
  if (value != nullptr && value->is_array())
    return std::ranges::any_of(value->get_array(), [&](const json::value& element) {
      return object_matches(pattern, &element);
    });
  if (value != nullptr && !value->is_object()) return false;
  return std::ranges::all_of(pattern, [&](const auto& member) {
    if (member.key() == "$or")
      return std::ranges::any_of(member.value().get_array(), [&](const json::value& each) {
        return object_matches(each.get_object(), value);
      });
    const json::value* inner =
        value == nullptr ? nullptr : value->get_object().if_contains(member.key());
    return member.value().is_object() ? object_matches(member.value().get_object(), inner)
                                      : list_matches(member.value().get_array(), inner);
  });
}

// What follows checks a pattern when it is read, so that matching need not.

bool is_scalar(const json::value& value) {
  return value.is_string() || value.is_number() || value.is_bool() || value.is_null();
}

bool is_text_operand(std::string_view name, const json::value& operand) {
  if (operand.is_string()) {
    if (name != "cidr") return true;
    const std::string_view network = view(operand.get_string());
    const auto base = parse_address(std::string(network.substr(0, network.find('/'))));
    const std::size_t slash = network.find('/');
    if (!base || slash == std::string_view::npos) return false;
    const auto length = parse_decimal(network.substr(slash + 1));
    return length && *length <= static_cast<std::uint64_t>(base->bits);
  }
  if ((name != "prefix" && name != "suffix") || !operand.is_object()) return false;
  const json::object& inner = operand.get_object();
  return inner.size() == 1 && inner.begin()->key() == "equals-ignore-case" &&
         inner.begin()->value().is_string();
}

bool is_numeric_operand(const json::value& operand) {
  if (!operand.is_array()) return false;
  const json::array& list = operand.get_array();
  if (list.size() != 2 && list.size() != 4) return false;
  for (std::size_t i = 0; i < list.size(); i += 2) {
    constexpr std::string_view kOperators[] = {"=", "<", "<=", ">", ">="};
    if (!list[i].is_string() || !list[i + 1].is_number()) return false;
    if (std::ranges::count(kOperators, view(list[i].get_string())) == 0) return false;
  }
  return true;
}

bool is_anything_but_operand(const json::value& operand) {
  if (is_scalar(operand)) return true;
  if (operand.is_array())
    return !operand.get_array().empty() && std::ranges::all_of(operand.get_array(), is_scalar);
  const json::object& inner = operand.get_object();
  if (inner.size() != 1) return false;
  const std::string_view name = inner.begin()->key();
  const json::value& value = inner.begin()->value();
  if (name != "prefix" && name != "suffix" && name != "equals-ignore-case" && name != "wildcard")
    return false;
  if (!value.is_array()) return value.is_string();
  return !value.get_array().empty() &&
         std::ranges::all_of(value.get_array(), [](const json::value& v) { return v.is_string(); });
}

Status check_rule(const json::value& rule) {
  if (is_scalar(rule)) return {};
  const std::string shown = json::serialize(rule);
  if (!rule.is_object() || rule.get_object().size() != 1)
    return fail(fmt::format("{} is neither a value nor an object with one operator", shown));
  const std::string_view name = rule.get_object().begin()->key();
  const json::value& operand = rule.get_object().begin()->value();
  bool good = false;
  if (name == "exists") {
    good = operand.is_bool();
  } else if (name == "numeric") {
    good = is_numeric_operand(operand);
  } else if (name == "anything-but") {
    good = is_anything_but_operand(operand);
  } else if (name == "prefix" || name == "suffix" || name == "equals-ignore-case" ||
             name == "wildcard" || name == "cidr") {
    good = is_text_operand(name, operand);
  } else {
    return fail(fmt::format(
        "there is no operator \"{}\"; known are prefix, suffix, equals-ignore-case, wildcard, "
        "anything-but, numeric, exists, cidr",
        name));
  }
  if (!good) return fail(fmt::format("the operator of {} cannot have this value", shown));
  return {};
}

Status check_object(const json::object& pattern) {
  if (pattern.empty()) return fail("an object of the pattern is empty");
  for (const auto& [key, value] : pattern) {
    const std::string name(key);
    if (value.is_object() && name != "$or") {
      RETURN_IF_FAILED(check_object(value.get_object()));
      continue;
    }
    if (!value.is_array() || value.get_array().empty())
      return fail(fmt::format("\"{}\" must be an object or a list that is not empty", name));
    if (name == "$or" && value.get_array().size() < 2)
      return fail("\"$or\" needs two objects or more");
    for (const json::value& each : value.get_array()) {
      if (name == "$or" && !each.is_object())
        return fail("\"$or\" holds something else than objects");
      RETURN_IF_FAILED(name == "$or" ? check_object(each.get_object()) : check_rule(each));
    }
  }
  return {};
}

}  // namespace

Result<Filter> Filter::parse(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax)
    return fail(fmt::format("a pattern has at most {} bytes", kPatternBytesMax));
  boost::system::error_code error;
  json::value value = json::parse(json::string_view(pattern.data(), pattern.size()), error);
  if (error || !value.is_object()) return fail("a pattern is a JSON object");
  if (repeats_a_member(pattern)) return fail("a member of the pattern is there twice");
  RETURN_IF_FAILED(check_object(value.get_object()));
  return Filter(std::move(value));
}

bool Filter::matches(const json::value& record) const {
  return object_matches(pattern_.get_object(), &record);
}

json::value body_json(std::string_view body) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (body[first] == '{' || body[first] == '[')) {
    boost::system::error_code error;
    json::value value = json::parse(json::string_view(body.data(), body.size()), error);
    if (!error) return value;
  }
  return json::value(json::string_view(body.data(), body.size()));
}

}  // namespace stanchion::runner

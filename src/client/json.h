// Writes requests as JSON and reads results, by the tables of members.h.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "base/result.h"
#include "base/text.h"
#include "client/members.h"
#include "wire/json_reader.h"
#include "wire/limits.h"
#include "wire/reply_writers.h"

namespace stanchion::client {

// Writes one request. Text that is not UTF-8 cannot be written; the first such member is
// remembered.
class RequestJson {
 public:
  template <class Request>
  static Result<std::string> write(const Request& request) {
    std::string out;
    RequestJson writer(out);
    writer.json_.begin();
    writer.structure(request);
    writer.json_.end();
    if (!writer.wrong_.empty()) return fail(fmt::format("{} is not UTF-8", writer.wrong_));
    return out;
  }

 private:
  explicit RequestJson(std::string& out) : json_(out) {}

  template <class T>
  void structure(const T& object) {
    std::apply([&](const auto&... m) { (one(m, object.*m.member), ...); }, Members<T>::list);
  }

  template <class M>
  void one(const M& m, const std::string& value) {
    json_.text({m.name, m.name}, checked(m.name, value));
  }
  template <class M>
  void one(const M& m, std::int64_t value) {
    json_.number({m.name, m.name}, value);
  }
  template <class M, class T>
  void one(const M& m, const std::optional<T>& value) {
    if (!value) return;
    if constexpr (std::is_same_v<T, std::string>) {
      if (m.base64) return json_.token({m.name, m.name}, to_base64(*value));
    }
    one(m, *value);
  }
  template <class M>
  void one(const M& m, const StringMap& map) {
    for (const auto& [key, value] : map) {
      checked(m.name, key);
      checked(m.name, value);
    }
    json_.map({m.name, m.name}, {"", ""}, map);
  }
  template <class M>
  void one(const M& m, const MessageAttributes& map) {
    for (const auto& [key, value] : map) checked(m.name, key);
    json_.structure_map(
        {m.name, m.name}, map, [](const auto& entry) -> std::string_view { return entry.first; },
        [&](const auto& entry) { structure(entry.second); });
  }
  template <class M>
  void one(const M& m, const std::vector<std::string>& list) {
    json_.texts({m.name, m.name}, list,
                [&](const std::string& item, std::string& out) { out += checked(m.name, item); });
  }
  template <class M, class Entry>
  void one(const M& m, const std::vector<Entry>& list) {
    json_.structures({m.name, m.name}, list, [&](const Entry& entry) { structure(entry); });
  }

  const std::string& checked(std::string_view name, const std::string& text) {
    if (wrong_.empty() && !is_utf8(text)) wrong_ = name;
    return text;
  }

  wire::JsonWriter json_;
  std::string_view wrong_;
};

// Reads one result. Members that no table names are skipped; a text or number that every answer has
// must be present.
class ResultJson {
 public:
  template <class T>
  static Result<T> read(std::string_view text) {
    ResultJson reader(text);
    T result;
    reader.structure(result);
    if (!reader.json_.finish()) return fail(reader.json_.error());
    return result;
  }

 private:
  using Token = wire::JsonReader::Token;

  explicit ResultJson(std::string_view text) : json_(text) {}

  template <class T>
  void structure(T& object) {
    if (!expect(Token::kObject, "an object")) return;
    json_.enter_object();
    std::uint32_t seen = 0;
    std::string_view key;
    while (json_.next_member(key)) {
      std::uint32_t bit = 1;
      const auto one = [&](const auto& m) {
        if (m.name != key) {
          bit <<= 1;
          return false;
        }
        if (json_.peek() == Token::kNull) {
          json_.skip_value();
        } else {
          seen |= bit;
          value(m, object.*m.member);
        }
        return true;
      };
      const bool known =
          std::apply([&](const auto&... m) { return (one(m) || ...); }, Members<T>::list);
      if (!known) json_.skip_value();
    }
    std::uint32_t bit = 1;
    const auto look = [&](const auto& m) {
      using Type = std::remove_cvref_t<decltype(object.*m.member)>;
      constexpr bool kAlways =
          std::is_same_v<Type, std::string> || std::is_same_v<Type, std::int64_t>;
      if (kAlways && !m.may_lack && (seen & bit) == 0 && !json_.failed())
        json_.fail(fmt::format("{} is missing", m.name));
      bit <<= 1;
    };
    std::apply([&](const auto&... m) { (look(m), ...); }, Members<T>::list);
  }

  template <class M>
  void value(const M&, std::string& target) {
    if (expect(Token::kString, "a string")) json_.read_string(target);
  }
  template <class M>
  void value(const M&, bool& target) {
    target = json_.peek() == Token::kTrue;
    if (!target && !expect(Token::kFalse, "true or false")) return;
    json_.skip_value();
  }
  template <class M>
  void value(const M&, std::int64_t& target) {
    if (!expect(Token::kNumber, "a number")) return;
    const std::string_view digits = json_.read_number();
    if (json_.failed()) return;
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, target);
    if (stop == end && problem == std::errc()) return;
    double real = 0;
    constexpr double kExactMax = 9007199254740992.0;
    if (std::from_chars(digits.data(), end, real).ec != std::errc() || std::abs(real) > kExactMax)
      return json_.fail("a number is too large");
    target = static_cast<std::int64_t>(real);
  }
  template <class M, class T>
  void value(const M& m, std::optional<T>& target) {
    value(m, target.emplace());
    if constexpr (std::is_same_v<T, std::string>) {
      if (!m.base64 || json_.failed()) return;
      target = from_base64(*target);
      if (!target) json_.fail(fmt::format("{} is not base64", m.name));
    }
  }
  template <class M, class Entry>
  void value(const M& m, std::map<std::string, Entry>& target) {
    if (!expect(Token::kObject, "an object")) return;
    json_.enter_object();
    std::string_view key;
    while (json_.next_member(key)) {
      if (!is_bounded(target.size())) return;
      Entry& entry = target[std::string(key)];
      if constexpr (std::is_same_v<Entry, std::string>)
        value(m, entry);
      else
        structure(entry);
    }
  }
  template <class M, class Entry>
  void value(const M& m, std::vector<Entry>& target) {
    if (!expect(Token::kArray, "a list")) return;
    json_.enter_array();
    while (json_.next_element()) {
      if (!is_bounded(target.size())) return;
      if constexpr (std::is_same_v<Entry, std::string>)
        value(m, target.emplace_back());
      else
        structure(target.emplace_back());
    }
  }

  bool is_bounded(std::size_t count) {
    if (count < wire::kElementsMax) return true;
    json_.fail(fmt::format("a list has more than {} elements", wire::kElementsMax));
    return false;
  }

  bool expect(Token wanted, std::string_view name) {
    if (json_.peek() == wanted) return true;
    json_.fail(fmt::format("{} was expected where something else stands", name));
    return false;
  }

  wire::JsonReader json_;
};

}  // namespace stanchion::client

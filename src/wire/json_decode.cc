#include "wire/json_decode.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "wire/attribute_names.h"
#include "wire/json_reader.h"
#include "wire/limits.h"
#include "wire/schema.h"

namespace stanchion::wire {
namespace {

using Token = JsonReader::Token;

// Decodes a JSON text by a Schema. Syntax errors stop the reader; other mistakes are kept in
// error_.
class Decoder {
 public:
  Decoder(std::string_view body, const DecodeContext& context) : reader_(body), context_(context) {}

  template <class T>
  Answer<Request> decode() {
    Request request(std::in_place_type<T>);
    T& value = std::get<T>(request);
    begin_request(value, context_.account, context_.region);
    structure(value);
    if (!reader_.finish()) return refuse(ErrorCode::kMalformedInput, reader_.error());
    if (error_) return std::unexpected(*std::move(error_));
    return request;
  }

 private:
  // Reads a JSON object into the fields of `object`. Members that no field names are skipped.
  template <class T>
  void structure(T& object) {
    if (!expect(Token::kObject, "a Structure")) return;
    reader_.enter_object();
    std::uint32_t seen = 0;
    std::string_view key;
    while (reader_.next_member(key)) {
      std::uint32_t bit = 1;
      const bool known = visit_fields(object, [&](const auto& f, auto& owner) {
        if (f.json != key) {
          bit <<= 1;
          return false;
        }
        if ((seen & bit) != 0) {
          twice(f.json);
        } else if (reader_.peek() == Token::kNull) {
          reader_.skip_value();
        } else {
          seen |= bit;
          member(f, owner);
        }
        return true;
      });
      if (!known) reader_.skip_value();
    }
    std::uint32_t bit = 1;
    visit_fields(object, [&](const auto& f, auto&) {
      if (f.required && (seen & bit) == 0 && !reader_.failed()) missing(f.json);
      bit <<= 1;
      return false;
    });
  }

  template <Kind kKind, class Owner, class Member>
  void member(const Field<kKind, Owner, Member>& f, Owner& owner) {
    auto& target = owner.*f.member;
    if constexpr (kKind == Kind::kQueueUrl) {
      std::string url;
      text(url);
      if (reader_.failed()) return;
      auto queue = parse_queue_url(url, context_);
      if (queue)
        target = *std::move(queue);
      else
        refuse_with(std::move(queue).error());
    } else if constexpr (kKind == Kind::kQueueName) {
      text(target.name);
    } else if constexpr (kKind == Kind::kQueueOwner) {
      text(target.account);
    } else if constexpr (kKind == Kind::kBase64) {
      base64(f.json, target);
    } else if constexpr (kKind == Kind::kPresence) {
      given_list(target);
    } else {
      value(target);
    }
  }

  void value(std::string& target) { text(target); }
  void value(std::optional<std::string>& target) { text(target.emplace()); }
  void value(std::optional<std::int64_t>& target) { number(target.emplace()); }

  void value(std::vector<std::string>& target) {
    list([&] { text(target.emplace_back()); });
  }

  template <class Entry>
  void value(std::vector<Entry>& target) {
    target.reserve(limits::kBatchEntriesMax);
    list([&] { structure(target.emplace_back()); });
  }

  void value(StringMap& target) {
    map([&](std::string_view key) {
      const auto [at, is_new] = target.try_emplace(std::string(key));
      is_new ? text(at->second) : twice(at->first);
    });
  }

  void value(std::vector<MessageAttribute>& target) {
    map([&](std::string_view key) {
      if (names_attribute(target, key)) return twice(key);
      MessageAttribute& attribute = target.emplace_back();
      attribute.name = key;
      structure(attribute);
    });
  }

  void text(std::string& out) {
    if (expect(Token::kString, "a String")) reader_.read_string(out);
  }

  void number(std::int64_t& out) {
    if (!expect(Token::kNumber, "an Integer")) return;
    const std::string_view digits = reader_.read_number();
    if (reader_.failed()) return;
    const char* const end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, out);
    if (stop == end && problem == std::errc()) return;
    // Some clients write whole numbers as 5.0 or 1e2.
    double real = 0;
    const bool is_real = std::from_chars(digits.data(), end, real).ec == std::errc();
    constexpr double kExactMax = 9007199254740992.0;
    if (!is_real || std::trunc(real) != real || std::abs(real) > kExactMax)
      return void(cannot_convert("NUMBER", "an Integer"));
    out = static_cast<std::int64_t>(real);
  }

  void base64(std::string_view name, std::optional<std::string>& target) {
    std::string encoded;
    text(encoded);
    if (reader_.failed()) return;
    target = from_base64(encoded);
    if (!target) reader_.fail(fmt::format("{} is not valid Base64", name));
  }

  // Some serialisers write an empty list for a member that was left out.
  void given_list(bool& target) {
    list([&] {
      target = true;
      reader_.skip_value();
    });
  }

  template <class Each>
  void list(const Each& each) {
    if (!expect(Token::kArray, "a List")) return;
    reader_.enter_array();
    for (std::size_t count = 0; reader_.next_element(); ++count) {
      if (!count_is_bounded(count)) return;
      reader_.peek() == Token::kNull ? reader_.skip_value() : each();
    }
  }

  template <class Each>
  void map(const Each& each) {
    if (!expect(Token::kObject, "a Map")) return;
    reader_.enter_object();
    std::string_view key;
    for (std::size_t count = 0; reader_.next_member(key); ++count) {
      if (!count_is_bounded(count)) return;
      reader_.peek() == Token::kNull ? reader_.skip_value() : each(key);
    }
  }

  bool count_is_bounded(std::size_t count) {
    if (count >= kElementsMax)
      reader_.fail(fmt::format("A list or map has more than {} elements", kElementsMax));
    else if (++elements_ > kElementsInAllMax)
      reader_.fail(
          fmt::format("The lists and maps have more than {} elements together", kElementsInAllMax));
    return !reader_.failed();
  }

  bool expect(Token wanted, std::string_view wanted_name) {
    const Token found = reader_.peek();
    if (found == wanted) return true;
    switch (found) {
      case Token::kObject:
        reader_.fail("Start of structure or map found where not expected.");
        break;
      case Token::kArray:
        reader_.fail("Start of list found where not expected");
        break;
      case Token::kString:
        return cannot_convert("STRING", wanted_name);
      case Token::kNumber:
        return cannot_convert("NUMBER", wanted_name);
      case Token::kTrue:
        return cannot_convert("TRUE", wanted_name);
      case Token::kFalse:
        return cannot_convert("FALSE", wanted_name);
      case Token::kNull:
        return cannot_convert("NULL", wanted_name);
      case Token::kNone:
        reader_.skip_value();  // Finds the mistake and its position.
        break;
    }
    return false;
  }

  bool cannot_convert(std::string_view found, std::string_view wanted) {
    reader_.fail(fmt::format("{}_VALUE can not be converted to {}", found, wanted));
    return false;
  }

  void twice(std::string_view name) {
    reader_.fail(fmt::format("The member {} is given more than once", name));
  }

  void missing(std::string_view name) {
    refuse_with({ErrorCode::kMissingParameter,
                 fmt::format("The request must contain the parameter {}.", name)});
  }

  void refuse_with(Error error) {
    if (!error_) error_ = std::move(error);
  }

  JsonReader reader_;
  const DecodeContext& context_;
  std::optional<Error> error_;
  std::size_t elements_ = 0;  // Of all lists and maps so far.
};

}  // namespace

Answer<Request> decode_json(Action action, std::string_view body, const DecodeContext& context) {
  Decoder decoder(body.empty() ? std::string_view("{}") : body, context);
  return decode_as(action, decoder);
}

}  // namespace stanchion::wire

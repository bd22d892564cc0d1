#include "wire/query_decode.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "wire/attribute_names.h"
#include "wire/limits.h"
#include "wire/schema.h"

namespace stanchion::wire {
namespace {

// Decodes the parameters by a Schema. The first mistake is kept and the rest is ignored.
class Decoder {
 public:
  Decoder(Action action, std::string_view path, const QueryParameters& parameters,
          const DecodeContext& context)
      : action_(action), path_(path), parameters_(parameters), context_(context) {}

  template <class T>
  Answer<Request> decode() {
    Request request(std::in_place_type<T>);
    T& object = std::get<T>(request);
    begin_request(object, context_.account, context_.region);
    // These two actions concern all queues of an account, so the URL of one queue does not answer
    // them.
    const bool account_wide = action_ == Action::kListQueues || action_ == Action::kCreateQueue;
    if (account_wide && path_ != "/") return invalid_action(name_of(action_));
    structure("", object);
    if (error_) return std::unexpected(*std::move(error_));
    return request;
  }

 private:
  // Reads the parameters below `prefix`, which is empty or ends with a dot, into the fields of
  // `object`.
  template <class T>
  void structure(std::string_view prefix, T& object) {
    visit_fields(object, [&](const auto& f, auto& owner) {
      member(f, std::string(prefix).append(f.query), owner);
      return error_.has_value();
    });
  }

  template <Kind kKind, class Owner, class Member>
  void member(const Field<kKind, Owner, Member>& f, const std::string& name, Owner& owner) {
    auto& target = owner.*f.member;
    if constexpr (kKind == Kind::kQueueUrl) {
      queue_url(target);
    } else if constexpr (kKind == Kind::kQueueName || kKind == Kind::kQueueOwner) {
      const std::string* given = parameters_.find(name);
      if (given != nullptr)
        (kKind == Kind::kQueueName ? target.name : target.account) = *given;
      else if (f.required)
        missing(name);
    } else if constexpr (kKind == Kind::kBase64) {
      const std::string* given = parameters_.find(name);
      if (given != nullptr && !(target = from_base64(*given)))
        refuse_with(ErrorCode::kMalformedInput, fmt::format("{} is not valid Base64", name));
    } else if constexpr (kKind == Kind::kPresence) {
      target = target || parameters_.has_any(name);
    } else if constexpr (std::is_same_v<Member, StringMap>) {
      map(f, name, target);
    } else {
      value(name, target);
    }
  }

  void queue_url(QueueRef& target) {
    const std::string* given = parameters_.find("QueueUrl");
    if (given == nullptr && path_ == "/")
      return void(error_ = invalid_action(name_of(action_)).error());
    const auto decoded_path = percent_decode(path_, false);
    auto queue = parse_queue_url(given != nullptr ? *given : decoded_path.value_or(""), context_);
    if (queue)
      target = *std::move(queue);
    else
      error_ = std::move(queue).error();
  }

  void value(std::string_view name, std::string& target) {
    if (const std::string* given = parameters_.find(name)) target = *given;
  }

  void value(std::string_view name, std::optional<std::string>& target) {
    if (const std::string* given = parameters_.find(name)) target = *given;
  }

  void value(std::string_view name, std::optional<std::int64_t>& target) {
    const std::string* given = parameters_.find(name);
    if (given == nullptr) return;
    const char* const end = given->data() + given->size();
    const auto [stop, problem] = std::from_chars(given->data(), end, target.emplace());
    if (stop != end || problem != std::errc() || given->empty())
      refuse_with(ErrorCode::kInvalidParameterValue,
                  fmt::format("Value {} for parameter {} is invalid. Reason: Must be an integer.",
                              *given, name));
  }

  void value(std::string_view name, std::vector<std::string>& target) {
    for (const std::string& element : elements(name)) {
      if (const std::string* given = parameters_.find(element)) target.push_back(*given);
    }
  }

  template <class Entry>
  void value(std::string_view name, std::vector<Entry>& target) {
    for (const std::string& element : elements(name)) {
      structure(fmt::format("{}.", element), target.emplace_back());
      if (error_) return;
    }
  }

  void value(std::string_view name, std::vector<MessageAttribute>& target) {
    for (const std::string& element : elements(name)) {
      const std::string* key = required(fmt::format("{}.Name", element));
      if (key == nullptr) return;
      if (names_attribute(target, *key))
        return refuse_with(
            ErrorCode::kInvalidParameterValue,
            fmt::format("Message (user) attribute '{}' is given more than once.", *key));
      MessageAttribute& attribute = target.emplace_back();
      attribute.name = *key;
      structure(fmt::format("{}.Value.", element), attribute);
      if (error_) return;
    }
  }

  template <class AnyField>
  void map(const AnyField& f, std::string_view name, StringMap& target) {
    for (const std::string& element : elements(name)) {
      const std::string* key = required(fmt::format("{}.{}", element, f.query_key));
      const std::string* held = required(fmt::format("{}.{}", element, f.query_value));
      if (key == nullptr || held == nullptr) return;
      target.insert_or_assign(*key, *held);
    }
  }

  std::vector<std::string> elements(std::string_view name) {
    std::vector<std::string> prefixes = parameters_.elements(name);
    if (prefixes.size() <= kElementsMax) return prefixes;
    refuse_with(ErrorCode::kMalformedInput,
                fmt::format("{} has more than {} elements", name, kElementsMax));
    return {};
  }

  const std::string* required(const std::string& name) {
    const std::string* given = parameters_.find(name);
    if (given == nullptr) missing(name);
    return given;
  }

  void missing(std::string_view name) {
    refuse_with(ErrorCode::kMissingParameter,
                fmt::format("The request must contain the parameter {}.", name));
  }

  void refuse_with(ErrorCode code, std::string message) {
    if (!error_) error_ = Error{code, std::move(message)};
  }

  Action action_;
  std::string_view path_;
  const QueryParameters& parameters_;
  const DecodeContext& context_;
  std::optional<Error> error_;
};

}  // namespace

std::unexpected<Error> invalid_action(std::string_view action) {
  return refuse(ErrorCode::kInvalidAction,
                fmt::format("The action {} is not valid for this endpoint.", action));
}

Answer<Request> decode_query(Action action, std::string_view path,
                             const QueryParameters& parameters, const DecodeContext& context) {
  Decoder decoder(action, path, parameters, context);
  return decode_as(action, decoder);
}

}  // namespace stanchion::wire

#include "wire/cloudwatch_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "wire/cbor.h"
#include "wire/cloudwatch_schema.h"
#include "wire/limits.h"
#include "wire/query_parameters.h"
#include "wire/timestamp.h"

namespace stanchion::wire {
namespace {

namespace json = boost::json;

constexpr std::string_view kVersion = "Version=2010-08-01";
constexpr std::string_view kScope = "/monitoring/aws4_request";
constexpr std::string_view kScopeInUrl = "%2Fmonitoring%2Faws4_request";

std::unexpected<Error> malformed(std::string what) {
  return refuse(ErrorCode::kMalformedInput, std::move(what));
}

// Whether a form has the parameter Version with CloudWatch's version.
bool has_version(std::string_view form) {
  for (std::size_t at = form.find(kVersion); at != std::string_view::npos;
       at = form.find(kVersion, at + 1))
    if (at == 0 || form[at - 1] == '&') return true;
  return false;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

template <class T>
inline constexpr bool kIsStructure = requires {
  Schema<T>::fields;
};

// What JSON and CBOR have in common: a tree of values, read into a request by its Schema. Members
// that no field names are ignored. The first mistake is kept.
class TreeDecoder {
 public:
  template <class T>
  Answer<cloudwatch::Request> decode(const json::value& tree) {
    T request;
    structure(tree, request, "the request");
    if (error_) return std::unexpected(*std::move(error_));
    return request;
  }

 private:
  template <class T>
  void structure(const json::value& value, T& object, std::string_view name) {
    const json::object* members = value.if_object();
    if (members == nullptr) return wrong(name, "a structure");
    visit_fields(object, [&](const auto& f, auto& owner) {
      const json::value* given = members->if_contains(f.json);
      if (given != nullptr && !given->is_null()) read(*given, owner.*f.member, f.json);
      return error_.has_value();
    });
  }

  template <class T>
  void read(const json::value& value, std::optional<T>& target, std::string_view name) {
    if constexpr (kIsStructure<T>)
      structure(value, target.emplace(), name);
    else
      scalar(value, target, name);
  }

  template <class T>
  void read(const json::value& value, std::vector<T>& target, std::string_view name) {
    const json::array* elements = value.if_array();
    if (elements == nullptr) return wrong(name, "a list");
    if (elements->size() > kElementsMax)
      return wrong(name, fmt::format("a list of at most {}", kElementsMax));
    for (const json::value& element : *elements) {
      if (element.is_null()) continue;
      if constexpr (kIsStructure<T>) {
        structure(element, target.emplace_back(), name);
      } else {
        std::optional<T> one;
        scalar(element, one, name);
        if (one) target.push_back(*std::move(one));
      }
    }
  }

  void scalar(const json::value& value, std::optional<std::string>& target, std::string_view name) {
    if (const json::string* text = value.if_string())
      target.emplace(text->data(), text->size());
    else
      wrong(name, "a text");
  }

  void scalar(const json::value& value, std::optional<bool>& target, std::string_view name) {
    if (const bool* given = value.if_bool())
      target = *given;
    else
      wrong(name, "true or false");
  }

  // Some clients write whole numbers as 60.0.
  void scalar(const json::value& value, std::optional<std::int64_t>& target,
              std::string_view name) {
    constexpr double kExactMax = 9007199254740992.0;
    if (const std::int64_t* whole = value.if_int64()) {
      target = *whole;
      return;
    }
    const double* real = value.if_double();
    if (real == nullptr || std::trunc(*real) != *real || std::abs(*real) > kExactMax)
      return wrong(name, "an integer");
    target = static_cast<std::int64_t>(*real);
  }

  void scalar(const json::value& value, std::optional<Instant>& target, std::string_view name) {
    if (value.is_number()) target = date_time_of(value.to_number<double>());
    if (const json::string* text = value.if_string())
      target = parse_date_time({text->data(), text->size()});
    if (!target) wrong(name, "a time: seconds since 1970");
  }

  void wrong(std::string_view name, std::string_view wanted) {
    if (!error_)
      error_ = Error{ErrorCode::kMalformedInput, fmt::format("{} must be {}.", name, wanted)};
  }

  std::optional<Error> error_;
};

// Parameters such as MetricDataQueries.member.1.MetricStat.Stat.
class QueryDecoder {
 public:
  explicit QueryDecoder(const QueryParameters& parameters) : parameters_(parameters) {}

  template <class T>
  Answer<cloudwatch::Request> decode() {
    T request;
    structure("", request);
    if (error_) return std::unexpected(*std::move(error_));
    return request;
  }

 private:
  template <class T>
  void structure(const std::string& prefix, T& object) {
    visit_fields(object, [&](const auto& f, auto& owner) {
      read(prefix + std::string(f.query), owner.*f.member);
      return error_.has_value();
    });
  }

  template <class T>
  void read(const std::string& name, std::optional<T>& target) {
    if constexpr (kIsStructure<T>) {
      if (parameters_.has_any(name)) structure(name + ".", target.emplace());
    } else {
      const std::string* given = parameters_.find(name);
      if (given == nullptr) return;
      target = parse<T>(*given);
      if (!target) wrong(fmt::format("The value {} for parameter {} is not valid.", *given, name));
    }
  }

  template <class T>
  void read(const std::string& name, std::vector<T>& target) {
    const std::vector<std::string> elements = parameters_.elements(name + ".member");
    if (elements.size() > kElementsMax)
      return wrong(fmt::format("{} has more than {} elements.", name, kElementsMax));
    for (const std::string& element : elements) {
      if constexpr (kIsStructure<T>) {
        structure(element + ".", target.emplace_back());
      } else if (const std::string* given = parameters_.find(element)) {
        target.push_back(*given);
      }
      if (error_) return;
    }
  }

  template <class T>
  static std::optional<T> parse(const std::string& text) {
    if constexpr (std::is_same_v<T, std::string>) return text;
    if constexpr (std::is_same_v<T, bool>) return parse_boolean(text);
    if constexpr (std::is_same_v<T, Instant>) return parse_date_time(text);
    if constexpr (std::is_same_v<T, std::int64_t>) {
      std::int64_t number = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, problem] = std::from_chars(text.data(), end, number);
      if (problem == std::errc() && stop == end) return number;
      return std::nullopt;
    }
  }

  void wrong(std::string what) {
    if (!error_) error_ = Error{ErrorCode::kInvalidParameterValue, std::move(what)};
  }

  const QueryParameters& parameters_;
  std::optional<Error> error_;
};

// Calls decode.operator()<T>() for the request T of that name.
template <class Decode>
Answer<cloudwatch::Request> decode_as(std::string_view action, const Decode& decode) {
  using cloudwatch::kActionNames;
  const auto found = std::ranges::find(kActionNames, action);
  if (action.empty()) return refuse(ErrorCode::kInvalidAction, "The request names no action.");
  if (found == kActionNames.end())
    return refuse(ErrorCode::kInvalidAction,
                  fmt::format("The action {} is not supported: of CloudWatch, this server answers "
                              "GetMetricData, GetMetricStatistics and ListMetrics, for the "
                              "metrics of its queues.",
                              action));
  switch (found - kActionNames.begin()) {
    case 0:
      return decode.template operator()<cloudwatch::GetMetricData>();
    case 1:
      return decode.template operator()<cloudwatch::GetMetricStatistics>();
    default:
      return decode.template operator()<cloudwatch::ListMetrics>();
  }
}

// Every value of a JSON text but the first stands behind one of these, outside of strings.
std::size_t count_values(std::string_view text) {
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string)
      i += c == '\\' ? 1 : 0;
    else
      values += c == ',' || c == '[' || c == '{' ? 1 : 0;
  }
  return values;
}

Answer<json::value> parse_json(std::string_view body) {
  if (body.empty()) return json::object();
  // A tree takes far more memory than its text.
  if (count_values(body) > kCloudwatchValuesMax)
    return malformed(fmt::format("There are more than {} values.", kCloudwatchValuesMax));
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::error_code problem;
  json::value tree = json::parse({body.data(), body.size()}, problem, {}, options);
  if (problem) return malformed("The request is not JSON: " + problem.message());
  return tree;
}

Answer<cloudwatch::Request> decode_tree(std::string_view action, const Answer<json::value>& tree) {
  if (!tree) return std::unexpected(tree.error());
  TreeDecoder decoder;
  return decode_as(action, [&]<class T>() { return decoder.decode<T>(*tree); });
}

Answer<QueryParameters> parse_query(const HttpCall& call) {
  return QueryParameters::parse(call.query(), call.body, kCloudwatchParametersMax);
}

}  // namespace

bool is_cloudwatch_query(std::string_view url, std::string_view authorization,
                         std::string_view body) {
  const std::size_t mark = std::min(url.find('?'), url.size() - 1);
  return authorization.contains(kScope) || url.contains(kScopeInUrl) ||
         has_version(url.substr(mark + 1)) || has_version(body);
}

std::string cloudwatch_action(const HttpCall& call, CloudwatchProtocol protocol) {
  switch (protocol) {
    case CloudwatchProtocol::kCbor:
      return std::string(call.path().substr(kCloudwatchPath.size()));
    case CloudwatchProtocol::kJson:
      return std::string(call.header("X-Amz-Target").substr(kCloudwatchTarget.size()));
    case CloudwatchProtocol::kQuery: {
      const auto parameters = parse_query(call);
      const std::string* action = parameters ? parameters->find("Action") : nullptr;
      return action == nullptr ? std::string() : *action;
    }
  }
  return {};
}

Answer<cloudwatch::Request> decode_cloudwatch(const HttpCall& call, CloudwatchProtocol protocol) {
  if (protocol == CloudwatchProtocol::kJson)
    return decode_tree(cloudwatch_action(call, protocol), parse_json(call.body));
  if (protocol == CloudwatchProtocol::kCbor)
    return decode_tree(cloudwatch_action(call, protocol), call.body.empty()
                                                              ? Answer<json::value>(json::object())
                                                              : decode_cbor(call.body));
  const auto parameters = parse_query(call);
  if (!parameters) return std::unexpected(parameters.error());
  const std::string* action = parameters->find("Action");
  QueryDecoder decoder(*parameters);
  return decode_as(action == nullptr ? std::string_view() : std::string_view(*action),
                   [&]<class T>() { return decoder.decode<T>(); });
}

}  // namespace stanchion::wire

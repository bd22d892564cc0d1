// An HTTP request and answer as the codecs see them: views and plain values, no sockets.
//
// An HttpCall owns nothing; what it points to must outlive every call that takes it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace stanchion::wire {

using HeaderView = std::pair<std::string_view, std::string_view>;  // Name, value.

struct HttpCall {
  std::string_view method;
  std::string_view target;  // Path and query, as in the request line.
  std::span<const HeaderView> headers;
  std::string_view body;

  // The first header of that name, in any case; empty if there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key.size() == name.size() && equals_ignoring_ascii_case(key, name)) return value;
    return {};
  }

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const {
    const std::size_t mark = target.find('?');
    return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  }
};

// The last one is Query for clients that want their answers in JSON instead of XML.
enum class Protocol { kJson, kQuery, kQueryJson };

inline constexpr std::string_view kRequestIdHeader = "x-amzn-RequestId";
inline constexpr std::string_view kQueryErrorHeader = "x-amzn-query-error";

struct HttpAnswer {
  int status = 200;
  std::string_view content_type;  // A literal.
  std::string request_id;         // The value of kRequestIdHeader.
  std::string query_error;        // The value of kQueryErrorHeader; empty: no such header.
  std::string body;
};

}  // namespace stanchion::wire

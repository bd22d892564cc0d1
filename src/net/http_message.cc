#include "net/http_message.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/text.h"

namespace stanchion::net {

namespace {

// What the headers of most responses take, so that they are written without growing.
constexpr std::size_t kUsualHeaderBytes = 128;

void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (header.name.size() == name.size() && equals_ignoring_ascii_case(header.name, name)) {
      return header.value;
    }
  }
  return std::nullopt;
}

void HttpRequest::clear() {
  method = target = {};
  headers.clear();
  body.clear();
  head.clear();
  http_1_0 = false;
}

void HttpResponse::add_header(std::string_view name, std::string_view value) {
  if (header_lines_.empty()) header_lines_.reserve(kUsualHeaderBytes);
  header_lines_.append(name).append(": ");
  const std::size_t start = header_lines_.size();
  header_lines_.append(value);
  std::replace_if(header_lines_.begin() + static_cast<std::ptrdiff_t>(start), header_lines_.end(),
                  is_control, ' ');
  header_lines_.append("\r\n");
}

void HttpResponse::add_plain_header(std::string_view name, std::string_view value) {
  if (header_lines_.empty()) header_lines_.reserve(kUsualHeaderBytes);
  header_lines_.append(name).append(": ").append(value).append("\r\n");
}

bool is_host(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~%!$&'()*+,;=:[]").find(c) != std::string_view::npos;
  });
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

bool append_response_head(std::string& out, const HttpResponse& response, ResponseFraming framing,
                          std::string_view date_line) {
  CHECK(response.status >= 200 && response.status <= 999, "a final status has three digits");
  if (response.status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
  } else {
    out.append("HTTP/1.1 ");
    append_number(out, static_cast<std::uint64_t>(response.status));
    out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  }
  out.append(date_line);
  const bool may_have_body = response.status != 204 && response.status != 304;
  if (may_have_body) {
    out.append("Content-Length: ");
    append_number(out, response.body.size());
    out.append("\r\n");
  }
  if (!framing.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (framing.http_1_0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append(response.header_lines()).append("\r\n");
  return may_have_body && !framing.head_only;
}

}  // namespace stanchion::net

#include "net/http_message.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/text.h"

namespace stanchion::net {

namespace {

// Room for the headers of most responses, so that they are written without reallocation.
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
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {100, "Continue"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {406, "Not Acceptable"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  const auto found =
      std::ranges::lower_bound(kPhrases, status, {}, &std::pair<int, std::string_view>::first);
  return found != std::end(kPhrases) && found->first == status ? found->second : "Unknown";
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
  if (framing.streamed) {
    if (!framing.http_1_0) out.append("Transfer-Encoding: chunked\r\n");
  } else if (may_have_body) {
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

void append_piece(std::string& out, std::string_view piece, ResponseFraming framing) {
  CHECK(!piece.empty(), "an empty chunk would end the body");
  if (framing.http_1_0) {
    out.append(piece);
    return;
  }
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, piece.size(), 16).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
  out.append("\r\n").append(piece).append("\r\n");
}

void append_last_piece(std::string& out, ResponseFraming framing) {
  if (!framing.http_1_0) out.append("0\r\n\r\n");
}

}  // namespace stanchion::net

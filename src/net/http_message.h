// The two messages of an HTTP exchange: the request as received, the response as the handler wants
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::net {

// Who is at the other end of a connection.
struct Peer {
  std::string address;  // "192.0.2.1", "2001:db8::1", or "unix".
  std::uint16_t port = 0;
  bool loopback = false;  // This machine: 127.0.0.0/8, ::1 or a Unix socket.
  bool tls = false;
};

struct HttpHeader {
  std::string_view name;
  std::string_view value;  // Without the white space around it.
};

// A complete request. The views point into `head` and live as long as the exchange does.
struct HttpRequest {
  std::string_view method;  // As sent: "POST".
  std::string_view target;  // "/123456789012/orders?Action=SendMessage"; without scheme and host.
  std::vector<HttpHeader> headers;
  std::string body;  // May be moved from.
  bool http_1_0 = false;
  Peer peer;

  std::string head;  // The bytes of the request line and headers.

  HttpRequest() = default;
  HttpRequest(const HttpRequest&) = delete;
  HttpRequest& operator=(const HttpRequest&) = delete;

  // The value of the first header with this name in any case.
  std::optional<std::string_view> header(std::string_view name) const;

  // Forgets the request and keeps the peer.
  void clear();
};

// A response. The server adds Date, Content-Length and Connection by itself.
class HttpResponse {
 public:
  explicit HttpResponse(int code = 200, std::string text = {})
      : status(code), body(std::move(text)) {}

  int status;
  std::string body;    // For a HEAD request the body is counted and not sent.
  bool close = false;  // Close the connection after this response.

  // `name` is a valid header name and not one that the server adds. Control characters in `value`
  // become spaces, so that no value can end its line.
  void add_header(std::string_view name, std::string_view value);

  // The same for a value made by us, known to have no control characters.
  void add_plain_header(std::string_view name, std::string_view value);

  // All headers added so far, each line with its CRLF.
  std::string_view header_lines() const { return header_lines_; }

 private:
  std::string header_lines_;
};

// Whether `host` may stand in a Host header: a name or address, and perhaps a port. The check is
// not strict, but rejects everything that could end a part of a URL or is not ASCII.
bool is_host(std::string_view text);

// "Not Found"; "Unknown" for a status without a name.
std::string_view reason_phrase(int status);

// How a response is written to the connection.
struct ResponseFraming {
  bool keep_alive = true;
  bool http_1_0 = false;   // A client of HTTP/1.0 has to be told that the connection is kept.
  bool head_only = false;  // The answer to HEAD.
  bool streamed = false;   // The body comes in chunks, or ends with the connection in HTTP/1.0.
};

// Appends the status line and headers; the body, if it is to be sent, has to follow. `date_line` is
// "Date: …\r\n". Returns whether the body is to be sent.
bool append_response_head(std::string& out, const HttpResponse& response, ResponseFraming framing,
                          std::string_view date_line);

// Appends a part of a streamed body. REQUIRES: not empty, because an empty chunk ends the body.
void append_piece(std::string& out, std::string_view piece, ResponseFraming framing);
// Appends the end of a streamed body.
void append_last_piece(std::string& out, ResponseFraming framing);

}  // namespace stanchion::net

// Parses requests from bytes: HTTP/1.1 and 1.0 request heads, bodies by length or in chunks.
//
// Pure: no socket, no clock. One parser per connection, used for one request after the other:
//
//   start(request) ─▶ feed ─▶ feed … ─▶ complete() | failed()
//
// The parser is strict where a lenient reading would let two programs disagree on where a request
// ends: bare line feeds, folded headers, a length together with chunks, and unknown transfer
// codings are refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "net/http_message.h"

namespace stanchion::net {

struct ParserLimits {
  std::size_t header_bytes_max = 0;  // The whole head; also the trailers of a chunked body.
  std::size_t header_count_max = 0;
  std::size_t body_bytes_max = 0;
};

// Why a request was refused: the status to answer with and a sentence for the body.
struct ParseFailure {
  int status = 0;
  std::string_view reason;
};

class RequestParser {
 public:
  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Begins a request. `request` is empty and must stay in place until the request is complete.
  void start(HttpRequest& request);

  // Takes bytes from the front of `input` and returns how many. Bytes not taken have to be passed
  // again, followed by more; nothing is taken until the head is complete. REQUIRES: start() was
  // called, not complete(), not failed().
  std::size_t feed(std::string_view input);

  bool head_done() const { return head_done_; }
  bool complete() const { return complete_; }
  bool failed() const { return failure_.status != 0; }
  const ParseFailure& failure() const { return failure_; }

  // Once the head is complete: whether the client keeps the connection, and whether it waits for
  // "100 Continue" before it sends the body.
  bool keep_alive() const { return keep_alive_; }
  bool expects_continue() const { return expects_continue_; }

 private:
  struct Impl;

  std::size_t feed_head(std::string_view input);
  std::size_t feed_body(std::string_view input);
  std::size_t feed_chunks(std::string_view input);
  void check_head();
  void fail(int status, std::string_view reason);

  ParserLimits limits_;
  std::unique_ptr<Impl> impl_;
  HttpRequest* request_ = nullptr;
  std::size_t scanned_ = 0;    // Bytes of the head known to contain no end of head.
  std::size_t body_left_ = 0;  // Of a body with a stated length.
  bool head_done_ = false;
  bool complete_ = false;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
  ParseFailure failure_;
};

}  // namespace stanchion::net

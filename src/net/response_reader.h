// Reads one HTTP/1.1 response after another from the bytes of a connection, on the client's side.
//
// A response that arrives in one piece is not copied: its head and its body are views of the given
// bytes. Interim responses (100 Continue and the like) are skipped. Everything is bounded: the
// interim responses and the head together, each line between chunks, the body.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "net/chunked_body.h"

namespace stanchion::net {

struct ResponseLimits {
  std::size_t head_bytes = 64 * 1024;
  std::size_t body_bytes = 64 * 1024 * 1024;
};

class ResponseReader {
 public:
  enum class State {
    kMore,    // The response is not complete yet.
    kDone,    // It is complete; see the accessors below. Call reset() before the next.
    kFailed,  // The bytes are not an HTTP response, or it is too large.
  };

  explicit ResponseReader(ResponseLimits limits = {}) : limits_(limits) {}

  // Takes the next bytes. A client that waits for each answer before it sends again never gets more
  // than one: bytes after a complete response are dropped, and the connection is not kept.
  State feed(std::string_view bytes);

  // The peer has closed: that ends a response without a stated length.
  State end();

  // Forgets the response. `bodiless`: the next one answers HEAD, and has no body whatever its
  // headers say.
  void reset(bool bodiless = false);

  // Whether bytes of a response have come since reset().
  bool begun() const { return begun_; }

  // REQUIRES: kDone. Valid until the next feed() or reset(), and as long as the bytes given are.
  int status() const { return status_; }
  std::string_view body() const { return body_; }
  bool keep_alive() const { return keep_alive_; }
  // The lines of headers, each with its end.
  std::string_view header_lines() const { return header_lines_; }

 private:
  State read(std::string_view input);
  State read_head(std::string_view input);
  State read_status_line(std::string_view line);
  bool read_header(std::string_view line);
  State read_chunks(std::string_view input);
  State keep(std::string_view input, State state);

  ResponseLimits limits_;
  std::string kept_;         // What has arrived so far, if it came in pieces.
  std::size_t begin_ = 0;    // Where the response begins, after interim ones.
  std::size_t scanned_ = 0;  // Up to here there is no end of head.
  std::size_t head_ = 0;     // Where the head ends; 0: not yet complete.
  std::size_t taken_ = 0;    // Of what follows the head: what chunked_ has taken.
  std::optional<std::size_t> length_;
  std::optional<ChunkedBody> chunked_;
  std::string joined_;  // The data of the chunks.
  bool begun_ = false;
  bool bodiless_ = false;
  bool keep_alive_ = true;
  int status_ = 0;
  std::string_view header_lines_;
  std::string_view body_;
};

}  // namespace stanchion::net

// Reads one HTTP/1.1 response after another from the bytes of a connection, for the client's side.
//
// A response that arrives in one piece is not copied: its body is a view of the bytes given.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stanchion::net {

class ResponseReader {
 public:
  enum class State {
    kMore,    // The response is not whole yet.
    kDone,    // It is; status(), body() and keep_alive() tell it. Call reset() before the next.
    kFailed,  // The bytes are no HTTP response, or it is too large.
  };

  static constexpr std::size_t kHeadMax = 64 * 1024;
  static constexpr std::size_t kBodyMax = 64 * 1024 * 1024;

  // Takes the next bytes. What follows a whole response is dropped: a client that waits for each
  // answer before it asks again is never sent more.
  State feed(std::string_view bytes);

  // The peer has closed: that ends a response which did not say how long it is.
  State end();

  void reset();

  // Whether bytes of a response have come that is not whole yet.
  bool begun() const { return !kept_.empty(); }

  // REQUIRES: kDone. Valid until the next feed() or reset(), and as long as the bytes given are.
  int status() const { return status_; }
  std::string_view body() const { return body_; }
  bool keep_alive() const { return keep_alive_; }

 private:
  State read(std::string_view input);
  State read_head(std::string_view input);
  bool read_header(std::string_view line);
  State read_chunks(std::string_view input);

  std::string kept_;       // What came so far, if it came in pieces.
  std::size_t head_ = 0;   // The size of the head; 0: not seen whole.
  std::size_t taken_ = 0;  // Of a body in chunks: where the next chunk begins.
  std::optional<std::size_t> length_;
  bool chunked_ = false;
  bool keep_alive_ = true;
  int status_ = 0;
  std::string_view body_;
  std::string joined_;  // The chunks without what is between them.
};

}  // namespace stanchion::net

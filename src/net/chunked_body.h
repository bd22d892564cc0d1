// Decodes the body of a chunked request from bytes.
//
// Pure. Strict: sizes are hexadecimal digits and nothing else, every line ends with CR LF, and no
// line holds a control character. Extensions and trailers are skipped.
//
//   size line ─▶ data ─▶ CR LF ─▶ size line … ─▶ size line of 0 ─▶ trailers ─▶ done
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stanchion::net {

class ChunkedBody {
 public:
  enum class State {
    kMore,      // The body is not complete yet.
    kDone,      // The body is complete.
    kBad,       // The framing violates HTTP.
    kTooLarge,  // Beyond body_bytes_max.
    kTooLong,   // A line, or the trailers together, are beyond line_bytes_max.
  };

  ChunkedBody(std::size_t body_bytes_max, std::size_t line_bytes_max)
      : body_bytes_max_(body_bytes_max), line_bytes_max_(line_bytes_max) {}

  // Takes bytes from the front of `input`, appends the data in them to `body`, and returns how many
  // bytes it took. Bytes not taken have to be passed again, followed by more. REQUIRES: kMore.
  std::size_t feed(std::string_view input, std::string& body);

  State state() const { return state_; }

 private:
  enum class Expects { kSize, kData, kEndOfData, kTrailer };

  std::size_t feed_once(std::string_view input, std::string& body);
  std::size_t feed_line(std::string_view input);
  void take_size(std::string_view line);
  void take_trailer(std::string_view line);

  std::size_t body_bytes_max_;
  std::size_t line_bytes_max_;
  State state_ = State::kMore;
  Expects expects_ = Expects::kSize;
  std::size_t left_ = 0;       // Of the chunk's data.
  std::size_t trailers_ = 0;   // Bytes of trailers so far.
  std::size_t body_size_ = 0;  // Size of all chunks so far, including the whole of the current one.
};

}  // namespace stanchion::net

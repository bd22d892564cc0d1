#include "net/response_reader.h"

#include <charconv>

#include "base/text.h"

namespace stanchion::net {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

void ResponseReader::reset() {
  kept_.clear();
  head_ = 0;
  taken_ = 0;
  length_.reset();
  chunked_ = false;
  keep_alive_ = true;
  body_ = {};
  joined_.clear();
}

ResponseReader::State ResponseReader::feed(std::string_view bytes) {
  if (kept_.empty()) {
    const State state = read(bytes);
    if (state == State::kMore) kept_.assign(bytes);
    return state;
  }
  kept_.append(bytes);
  return read(kept_);
}

ResponseReader::State ResponseReader::end() {
  if (head_ == 0 || length_ || chunked_) return State::kFailed;
  body_ = std::string_view(kept_).substr(head_);
  keep_alive_ = false;
  return State::kDone;
}

ResponseReader::State ResponseReader::read(std::string_view input) {
  if (head_ == 0) {
    if (const State state = read_head(input); state != State::kDone) return state;
  }
  if (chunked_) return read_chunks(input);
  if (!length_) return input.size() - head_ > kBodyMax ? State::kFailed : State::kMore;
  if (input.size() - head_ < *length_) return State::kMore;
  body_ = input.substr(head_, *length_);
  return State::kDone;
}

ResponseReader::State ResponseReader::read_head(std::string_view input) {
  const std::size_t end = input.find("\r\n\r\n");
  if (end == std::string_view::npos) return input.size() > kHeadMax ? State::kFailed : State::kMore;
  static constexpr std::string_view kStatusLine = "HTTP/1.x 200";
  if (end > kHeadMax || end < kStatusLine.size() || !input.starts_with("HTTP/1."))
    return State::kFailed;
  const auto status = parse_decimal(input.substr(9, 3));
  if (!status || *status < 100) return State::kFailed;
  status_ = static_cast<int>(*status);
  keep_alive_ = input[7] != '0';
  // Each line with its end; the first is the status line.
  std::string_view lines = input.substr(0, end + 2);
  lines.remove_prefix(lines.find("\r\n") + 2);
  while (!lines.empty()) {
    const std::size_t line_end = lines.find("\r\n");
    if (!read_header(lines.substr(0, line_end))) return State::kFailed;
    lines.remove_prefix(line_end + 2);
  }
  head_ = end + 4;
  taken_ = head_;
  if (status_ == 204 || status_ == 304) length_ = 0;
  return State::kDone;
}

// Looks at the three headers that say where the response ends; false if one of them cannot be.
bool ResponseReader::read_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  // Most headers are told apart by their length alone.
  if (name.size() != 14 && name.size() != 10 && name.size() != 17) return true;
  const std::string_view value = trim(line.substr(colon + 1));
  if (equals_ignoring_ascii_case(name, "Content-Length")) {
    const auto length = parse_decimal(value);
    if (!length || *length > kBodyMax) return false;
    length_ = static_cast<std::size_t>(*length);
  } else if (equals_ignoring_ascii_case(name, "Connection")) {
    if (equals_ignoring_ascii_case(value, "close")) keep_alive_ = false;
    if (equals_ignoring_ascii_case(value, "keep-alive")) keep_alive_ = true;
  } else if (equals_ignoring_ascii_case(name, "Transfer-Encoding")) {
    chunked_ = equals_ignoring_ascii_case(value, "chunked");
    return chunked_;
  }
  return true;
}

ResponseReader::State ResponseReader::read_chunks(std::string_view input) {
  while (true) {
    const std::string_view rest = input.substr(taken_);
    const std::size_t line_end = rest.find("\r\n");
    if (line_end == std::string_view::npos)
      return rest.size() > 1024 ? State::kFailed : State::kMore;
    std::size_t size = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + line_end, size, 16);
    if (error != std::errc() || stop == rest.data() || size > kBodyMax) return State::kFailed;
    const std::size_t whole = line_end + 2 + size + 2;
    if (rest.size() < whole) return State::kMore;
    if (rest.substr(whole - 2, 2) != "\r\n") return State::kFailed;
    taken_ += whole;
    if (size == 0) break;
    if (joined_.size() + size > kBodyMax) return State::kFailed;
    joined_.append(rest.substr(line_end + 2, size));
  }
  body_ = joined_;
  return State::kDone;
}

}  // namespace stanchion::net

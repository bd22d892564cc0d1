#include "net/response_reader.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace stanchion::net {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::string_view kEndOfHead = "\r\n\r\n";
// Of the lines between chunks, and of all trailers.
constexpr std::size_t kChunkLineMax = 8 * 1024;

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Whether `word` is in a comma-separated list.
bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (equals_ignoring_ascii_case(trim(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

void ResponseReader::reset(bool bodiless) {
  kept_.clear();
  begin_ = scanned_ = head_ = taken_ = 0;
  length_.reset();
  chunked_.reset();
  joined_.clear();
  begun_ = false;
  bodiless_ = bodiless;
  keep_alive_ = true;
  header_lines_ = {};
  body_ = {};
}

ResponseReader::State ResponseReader::feed(std::string_view bytes) {
  begun_ = true;
  if (kept_.empty()) return keep(bytes, read(bytes));
  kept_.append(bytes);
  return keep(kept_, read(kept_));
}

// Keeps what will be needed of an incomplete response: the head, and the bytes after it that are
// not taken.
ResponseReader::State ResponseReader::keep(std::string_view input, State state) {
  if (state != State::kMore) return state;
  if (kept_.empty()) kept_.assign(input);
  kept_.erase(head_, std::exchange(taken_, 0));
  return state;
}

ResponseReader::State ResponseReader::end() {
  if (head_ == 0 || length_ || chunked_) return State::kFailed;
  body_ = std::string_view(kept_).substr(head_);
  header_lines_ = std::string_view(kept_).substr(begin_, head_ - begin_ - kEndOfLine.size());
  keep_alive_ = false;
  return State::kDone;
}

ResponseReader::State ResponseReader::read(std::string_view input) {
  if (head_ == 0) {
    if (const State state = read_head(input); state != State::kDone) return state;
  }
  header_lines_ = input.substr(begin_, head_ - begin_ - kEndOfLine.size());
  if (chunked_) return read_chunks(input.substr(head_));
  if (!length_) return input.size() - head_ > limits_.body_bytes ? State::kFailed : State::kMore;
  if (input.size() - head_ < *length_) return State::kMore;
  body_ = input.substr(head_, *length_);
  if (input.size() - head_ > *length_) keep_alive_ = false;
  return State::kDone;
}

// The head of the first response that is not an interim one.
ResponseReader::State ResponseReader::read_head(std::string_view input) {
  while (true) {
    const std::size_t end = input.find(kEndOfHead, std::max(begin_, scanned_));
    if (end == std::string_view::npos) {
      // The end marker may have begun to arrive.
      const std::size_t part = std::min(input.size(), kEndOfHead.size() - 1);
      scanned_ = input.size() - part;
      return scanned_ > limits_.head_bytes ? State::kFailed : State::kMore;
    }
    if (end > limits_.head_bytes) return State::kFailed;
    // Each line with its end; the first is the status line.
    std::string_view lines = input.substr(begin_, end + kEndOfLine.size() - begin_);
    const std::size_t first_end = lines.find(kEndOfLine);
    if (const State state = read_status_line(lines.substr(0, first_end)); state != State::kDone)
      return state;
    lines.remove_prefix(first_end + kEndOfLine.size());
    const std::size_t next = end + kEndOfHead.size();
    if (status_ < 200) {
      begin_ = next;
      continue;
    }
    begin_ = end + kEndOfLine.size() - lines.size();
    while (!lines.empty()) {
      const std::size_t line_end = lines.find(kEndOfLine);
      if (!read_header(lines.substr(0, line_end))) return State::kFailed;
      lines.remove_prefix(line_end + kEndOfLine.size());
    }
    // A length together with chunks is how requests are smuggled; neither can be trusted.
    if (chunked_ && length_) return State::kFailed;
    head_ = next;
    if (bodiless_ || status_ == 204 || status_ == 304) {
      chunked_.reset();
      length_ = 0;
    }
    return State::kDone;
  }
}

ResponseReader::State ResponseReader::read_status_line(std::string_view line) {
  static constexpr std::string_view kShortest = "HTTP/1.x 200";
  if (line.size() < kShortest.size() || !line.starts_with("HTTP/1.") || line[8] != ' ')
    return State::kFailed;
  const auto status = parse_decimal(line.substr(9, 3));
  // Nobody asked to switch protocols.
  if (!status || *status < 100 || *status == 101) return State::kFailed;
  status_ = static_cast<int>(*status);
  keep_alive_ = line[7] != '0';
  return State::kDone;
}

// Reads the three headers that say where the response ends; false if one of them is invalid.
bool ResponseReader::read_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view name = line.substr(0, colon);
  // A folded line, or a name that others might read differently.
  if (name.front() == ' ' || name.front() == '\t' || name.back() == ' ' || name.back() == '\t')
    return false;
  // Most headers can be told apart by the length of their name alone.
  if (name.size() != 14 && name.size() != 10 && name.size() != 17) return true;
  const std::string_view value = trim(line.substr(colon + 1));
  if (equals_ignoring_ascii_case(name, "Content-Length")) {
    const auto length = parse_decimal(value);
    if (!length || *length > limits_.body_bytes || (length_ && *length_ != *length)) return false;
    length_ = static_cast<std::size_t>(*length);
  } else if (equals_ignoring_ascii_case(name, "Connection")) {
    if (lists(value, "keep-alive")) keep_alive_ = true;
    if (lists(value, "close")) keep_alive_ = false;
  } else if (equals_ignoring_ascii_case(name, "Transfer-Encoding")) {
    if (chunked_ || !equals_ignoring_ascii_case(value, "chunked")) return false;
    chunked_.emplace(limits_.body_bytes, kChunkLineMax);
  }
  return true;
}

ResponseReader::State ResponseReader::read_chunks(std::string_view input) {
  taken_ = chunked_->feed(input, joined_);
  if (chunked_->state() == ChunkedBody::State::kMore) return State::kMore;
  if (chunked_->state() != ChunkedBody::State::kDone) return State::kFailed;
  body_ = joined_;
  if (taken_ < input.size()) keep_alive_ = false;
  return State::kDone;
}

}  // namespace stanchion::net

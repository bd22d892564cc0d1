#include "net/chunked_body.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace stanchion::net {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7F;
}

}  // namespace

std::size_t ChunkedBody::feed(std::string_view input, std::string& body) {
  CHECK(state_ == State::kMore, "a body ends once");
  std::size_t used = 0;
  while (used < input.size() && state_ == State::kMore) {
    const std::size_t taken = feed_once(input.substr(used), body);
    if (taken == 0) break;
    used += taken;
  }
  return used;
}

std::size_t ChunkedBody::feed_once(std::string_view input, std::string& body) {
  switch (expects_) {
    case Expects::kData: {
      const std::size_t size = std::min(left_, input.size());
      body.append(input.substr(0, size));
      left_ -= size;
      if (left_ == 0) expects_ = Expects::kEndOfData;
      return size;
    }
    case Expects::kEndOfData: {
      const std::string_view end = input.substr(0, kEndOfLine.size());
      if (!kEndOfLine.starts_with(end)) state_ = State::kBad;
      if (end.size() < kEndOfLine.size()) return 0;
      expects_ = Expects::kSize;
      return end.size();
    }
    case Expects::kSize:
    case Expects::kTrailer:
      return feed_line(input);
  }
  return 0;
}

// Takes a complete line or nothing.
std::size_t ChunkedBody::feed_line(std::string_view input) {
  const auto stop = std::ranges::find_if(input, is_control);
  const auto size = static_cast<std::size_t>(stop - input.begin());
  const std::string_view end = input.substr(size, kEndOfLine.size());
  if (size + trailers_ > line_bytes_max_) {
    state_ = State::kTooLong;
  } else if (!kEndOfLine.starts_with(end)) {
    state_ = State::kBad;
  } else if (end.size() == kEndOfLine.size()) {
    const std::string_view line = input.substr(0, size);
    if (expects_ == Expects::kSize)
      take_size(line);
    else
      take_trailer(line);
    return size + end.size();
  }
  return 0;
}

void ChunkedBody::take_size(std::string_view line) {
  const std::string_view digits = line.substr(0, line.find(';'));
  std::uint64_t size = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, size, 16);
  if (problem == std::errc::result_out_of_range) {
    state_ = State::kTooLarge;
  } else if (problem != std::errc() || stop != end) {
    state_ = State::kBad;
  } else if (size > body_bytes_max_ - body_size_) {
    state_ = State::kTooLarge;
  } else {
    left_ = static_cast<std::size_t>(size);
    body_size_ += left_;
    expects_ = size == 0 ? Expects::kTrailer : Expects::kData;
  }
}

void ChunkedBody::take_trailer(std::string_view line) {
  trailers_ += line.size() + kEndOfLine.size();
  if (line.empty())
    state_ = State::kDone;
  else if (line.find(':') == std::string_view::npos || line.starts_with(' '))
    state_ = State::kBad;
}

}  // namespace stanchion::net

// Bytes that wait to be written, in order: small pieces are copied together, large ones kept as
// they are.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace stanchion::net {

class OutputQueue {
 public:
  // The string that small pieces are appended to.
  std::string& tail() { return rest_ ? rest_->back() : first_; }

  // From this size on, referring to a body is cheaper than copying it.
  static constexpr std::size_t kOwnPieceMin = 32 * 1024;

  void append(std::string&& body) {
    if (body.size() < kOwnPieceMin) {
      tail().append(body);
      return;
    }
    if (!rest_) rest_ = std::make_unique<std::deque<std::string>>();
    rest_->push_back(std::move(body));
    rest_->emplace_back();  // The next bytes must not be appended to a large piece.
  }

  bool empty() const { return size() == 0; }

  std::size_t size() const {
    std::size_t total = first_.size() - sent_;
    if (rest_) {
      for (const std::string& piece : *rest_) total += piece.size();
    }
    return total;
  }

  // Bytes that are held: a piece is freed when its last byte is written.
  std::size_t memory() const { return size() + sent_; }

  using Pieces = std::array<iovec, 8>;

  // The next bytes to write, as many pieces as fit. REQUIRES: not empty.
  std::span<const iovec> front(Pieces& pieces) {
    std::size_t count = 0;
    const auto add = [&](std::string& piece, std::size_t from) {
      if (piece.size() > from && count < pieces.size()) {
        pieces[count++] = {piece.data() + from, piece.size() - from};
      }
    };
    add(first_, sent_);
    if (rest_) {
      for (std::string& piece : *rest_) add(piece, 0);
    }
    return {pieces.data(), count};
  }

  // The first `bytes` are written.
  void consume(std::size_t bytes) {
    sent_ += bytes;
    while (sent_ >= first_.size()) {
      sent_ -= first_.size();
      if (!rest_) {
        CHECK(sent_ == 0, "no more is written than was there");
        first_.clear();
        if (first_.capacity() > kKeptCapacity) release(first_);
        return;
      }
      first_ = std::move(rest_->front());
      rest_->pop_front();
      if (rest_->empty()) rest_.reset();
    }
  }

 private:
  static constexpr std::size_t kKeptCapacity = 1024;

  std::string first_;
  std::size_t sent_ = 0;                           // Bytes of first_ that are written.
  std::unique_ptr<std::deque<std::string>> rest_;  // Null or not empty.
};

}  // namespace stanchion::net

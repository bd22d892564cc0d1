// Notices that the pages of a server do not end: a server that gives a NextToken again, or always
// another one and nothing else, would be asked for ever.
//
// Brent's way to find a cycle: each token is compared with one that came before, which is replaced
// after 1, 2, 4, 8 … pages. A cycle of any length is noticed within three times the pages that come
// before its second turn, and one token is kept.
#pragma once

#include <cstddef>
#include <string>

namespace stanchion::cli {

class PageTokens {
 public:
  // Pages without anything on them, one after the other. There may be many where something is searched
  // for: a page of Stanchion ends after 1 MiB that it read from disk, so this is a queue of 100 GiB.
  static constexpr std::size_t kEmptyMax = 100'000;

  // Why the pages do not seem to end, after one with so many items and this token for the next one;
  // empty: they may.
  std::string endless(const std::string& token, std::size_t items) {
    if (repeats(token))
      return "the server gave a NextToken for the second time: its pages do not end";
    empty_ = items > 0 ? 0 : empty_ + 1;
    if (empty_ < kEmptyMax) return "";
    return "the server gave " + std::to_string(empty_) + " pages in a row with nothing on them";
  }

  // Whether the token came before.
  bool repeats(const std::string& token) {
    if (count_ > 0 && token == kept_) return true;
    if (++count_ == keep_next_) {
      kept_ = token;
      keep_next_ *= 2;
    }
    return false;
  }

 private:
  std::string kept_;
  std::size_t count_ = 0;
  std::size_t empty_ = 0;  // Pages since the last item.
  std::size_t keep_next_ = 1;
};

}  // namespace stanchion::cli

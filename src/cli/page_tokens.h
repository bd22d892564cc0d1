// Notices that the pages of a server do not end: a server that gives a NextToken again would be asked
// for ever.
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
  std::size_t keep_next_ = 1;
};

}  // namespace stanchion::cli

#include "base/nearest_word.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace stanchion {
namespace {

// The edit distance: how many letters have to be changed, added, removed or swapped with their
// neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  static constexpr std::size_t kWordSizeMax = 64;
  if (word.size() > kWordSizeMax) return {};
  std::string_view best;
  // A typing error; a short word has room for only one.
  std::size_t best_distance = word.size() < 5 ? 2 : 3;
  const std::string lower = to_lower_ascii(word);
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(lower, to_lower_ascii(candidate));
    if (d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace stanchion

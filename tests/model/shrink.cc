#include "tests/model/shrink.h"

#include <algorithm>

namespace stanchion::reference {
namespace {

class Shrinker {
 public:
  Shrinker(Sequence sequence, const std::function<bool(const Sequence&)>& fails, int budget)
      : best_(std::move(sequence)), fails_(fails), budget_(budget) {}

  Sequence run() {
    if (best_.strict) {
      Sequence lenient = best_;
      lenient.strict = false;
      try_instead(std::move(lenient));
    }
    bool progress = true;
    while (progress && budget_ > 0) {
      progress = false;
      for (std::size_t chunk = std::max<std::size_t>(1, best_.operations.size() / 2); chunk > 0;
           chunk /= 2)
        progress |= remove_chunks(chunk);
      progress |= simplify();
    }
    return best_;
  }

 private:
  bool try_instead(Sequence candidate) {
    if (budget_-- <= 0 || !fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool remove_chunks(std::size_t chunk) {
    bool progress = false;
    // From the back, where most of the irrelevant operations are.
    for (std::size_t end = best_.operations.size(); end > 0 && budget_ > 0;) {
      const std::size_t begin = end - std::min(end, chunk);
      Sequence candidate = best_;
      const auto first = candidate.operations.begin();
      candidate.operations.erase(first + static_cast<std::ptrdiff_t>(begin),
                                 first + static_cast<std::ptrdiff_t>(end));
      progress |= try_instead(std::move(candidate));
      end = begin;
    }
    return progress;
  }

  bool simplify() {
    bool progress = false;
    for (std::size_t i = 0; i < best_.operations.size() && budget_ > 0; ++i) {
      const std::vector<Operation> candidates = simpler(best_.operations[i]);
      for (const Operation& operation : candidates) {
        Sequence candidate = best_;
        candidate.operations[i] = operation;
        if (!try_instead(std::move(candidate))) continue;
        progress = true;
        break;
      }
    }
    return progress;
  }

  Sequence best_;
  const std::function<bool(const Sequence&)>& fails_;
  int budget_;
};

}  // namespace

Sequence shrink(Sequence sequence, const std::function<bool(const Sequence&)>& fails, int budget) {
  return Shrinker(std::move(sequence), fails, budget).run();
}

}  // namespace stanchion::reference

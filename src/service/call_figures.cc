#include "service/call_figures.h"

namespace stanchion::service {

CallFigures::CallFigures(std::size_t reactors) {
  for (std::size_t i = 0; i < reactors; ++i) reactors_.push_back(std::make_unique<OfReactor>());
}

std::array<CallFigures::Row, CallFigures::kRows> CallFigures::sum() const {
  std::array<Row, kRows> rows{};
  for (const auto& reactor : reactors_) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const Counted& counted = (*reactor)[i];
      rows[i].took += counted.took.counts();
      for (std::size_t code = 0; code < kErrorCount; ++code)
        rows[i].errors[code] += counted.errors[code].value();
    }
  }
  return rows;
}

}  // namespace stanchion::service

// How often each action was called, how its calls ended, and how long they took.
//
// Each reactor counts for itself, on its own thread; any thread may add up what they have counted.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/latency.h"
#include "model/action.h"
#include "model/cloudwatch.h"
#include "model/error.h"

namespace stanchion::service {

class CallFigures {
 public:
  // First the actions of SQS, then those of CloudWatch. Calls of which it is not known what they
  // asked for stand behind all actions.
  static constexpr std::size_t kRows = kActions.size() + cloudwatch::kActionNames.size() + 1;
  static std::string_view name_of_row(std::size_t row) {
    if (row < kActions.size()) return kActionNames[row];
    row -= kActions.size();
    return row < cloudwatch::kActionNames.size() ? cloudwatch::kActionNames[row]
                                                 : std::string_view("unknown");
  }
  static std::size_t row_of(std::optional<Action> action) {
    return action ? static_cast<std::size_t>(*action) : kRows - 1;
  }
  static std::size_t row_of(const cloudwatch::Request& request) {
    return kActions.size() + request.index();
  }

  struct Row {
    LatencyCounts took;
    std::array<std::uint64_t, kErrorCount> errors{};  // By code.
  };

  explicit CallFigures(std::size_t reactors);

  // On the thread of that reactor.
  void note(std::size_t reactor, std::size_t row, std::optional<ErrorCode> error,
            std::chrono::microseconds took) {
    Counted& counted = (*reactors_[reactor])[row];
    counted.took.add(took);
    if (error) counted.errors[static_cast<std::size_t>(*error)].add();
  }

  std::array<Row, kRows> sum() const;

 private:
  struct Counted {
    Latency took;
    std::array<Tally, kErrorCount> errors;
  };
  using OfReactor = std::array<Counted, kRows>;

  std::vector<std::unique_ptr<OfReactor>> reactors_;
};

}  // namespace stanchion::service

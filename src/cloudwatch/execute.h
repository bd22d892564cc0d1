// Executes the calls of CloudWatch on the history of the queues.
//
// A caller sees the queues of its own account in its region, by their names. Everything that is not
// a metric of SQS has no values here, as on AWS a metric that nobody has put.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "history/history.h"
#include "model/cloudwatch.h"
#include "model/error.h"

namespace stanchion::cloudwatch {

struct Caller {
  std::string account;
  std::string region;
};

class Executor {
 public:
  // The history must outlive it.
  Executor(const history::History& history, Caller caller, Instant now)
      : history_(history), caller_(std::move(caller)), now_(now) {}

  Answer<Result> execute(const Request& request);

  // Why the history could not be read, if that made the call fail.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  Answer<Result> run(const GetMetricData& request);
  Answer<Result> run(const GetMetricStatistics& request);
  Answer<Result> run(const ListMetrics& request);

  friend class MathRun;
  Answer<std::vector<history::Bucket>> read(const history::Reading& reading);

  const history::History& history_;
  const Caller caller_;
  const Instant now_;
  std::optional<Failure> failure_;
};

// The queue that the dimensions name, if they name a queue and nothing else.
std::optional<std::string> queue_of(const std::vector<Dimension>& dimensions);

// The checks that several calls have in common.
std::unexpected<Error> missing(std::string_view parameter);
std::optional<Error> check_range(const std::optional<Instant>& start,
                                 const std::optional<Instant>& end);
std::optional<Error> check_period(std::int64_t period);

}  // namespace stanchion::cloudwatch

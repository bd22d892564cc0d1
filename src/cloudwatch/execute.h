// Executes the calls of CloudWatch on the history of the queues, in turns: a call may ask for
// hundreds of metrics of two months, and others want to know something too.
//
// A caller sees the queues of its own account in its region, by their names. Everything that is not
// a metric of SQS has no values here, as on AWS a metric that nobody has put.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

// When so many points of the history were read, others have their turn: some tens of milliseconds.
inline constexpr std::uint64_t kPointsATurn = 20'000;

class MathRun;

// One call under way.
class Executor {
 public:
  // The request must outlive it.
  Executor(const Request& request, Caller caller, Instant now);
  ~Executor();

  // Does a part of the call, at least one metric of it; nullopt if there is more to do. The history
  // need not be the same each time.
  std::optional<Answer<Result>> advance(const history::History& history);

  // Bytes that the metrics take which were read so far, roughly.
  std::size_t held() const;

  // Why the history could not be read, if that made the call fail.
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  std::optional<Answer<Result>> run(const GetMetricData& request);
  Answer<Result> run(const GetMetricStatistics& request);
  Answer<Result> run(const ListMetrics& request);

  friend class MathRun;
  std::optional<Error> read(const history::Reading& reading,
                            const history::History::BucketVisitor& visit);

  const Request& request_;
  const Caller caller_;
  const Instant now_;
  const history::History* history_ = nullptr;  // During a turn.
  std::unique_ptr<MathRun> math_;              // Of a GetMetricData that has begun.
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

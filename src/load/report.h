// The results of a run, as a table for people and as JSON for programs.
#pragma once

#include <optional>
#include <string>

#include "load/ledger.h"
#include "load/loop.h"
#include "load/options.h"

namespace stanchion::load {

struct Outcome {
  Stats stats;
  double seconds = 0;  // Of measuring.
  Findings findings;
  Errors errors;
  bool interrupted = false;  // Interrupted before its end.
  double client_cpu = 0;     // The share of one core that this process used meanwhile.
  std::size_t check_every = 1;

  bool right(bool fifo) const { return errors.total() == 0 && findings.right(fifo); }
};

// The main operation of the run: its messages per second are the result.
Op headline(Workload workload);

std::string to_table(const Options& options, const Outcome& outcome);
std::string to_json(const Options& options, const Outcome& outcome);

// The progress of a run, for the live line.
struct Progress {
  std::string doing;
  double messages_per_second = 0;  // Of the main operation, as in the table.
  const Histogram& latency;
  std::optional<double> seconds_left = {};
};
std::string to_line(const Progress& progress);

// "812 ns", "12.3 µs", "1.20 ms", "3.4 s": three digits.
std::string format_duration(Histogram::Nanos duration);
// "1,234,567".
std::string format_count(double value);

}  // namespace stanchion::load

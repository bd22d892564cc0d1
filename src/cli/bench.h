// `stanchion bench`: a load generator for any SQS endpoint, which checks what it receives.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/bench_options.h"

namespace stanchion::cli {

// The flags of the command and the command itself.
class BenchCommand {
 public:
  explicit BenchCommand(CLI::App& app);

  CLI::App* command() { return command_; }
  // Returns an exit status: 0 if it ran and everything that came was right.
  int run();

 private:
  void add_flags();

  CLI::App* command_;
  bench::Options options_;
  std::string workload_ = "cycle";
  std::string protocol_ = "json";
  std::string check_ = "auto";
};

}  // namespace stanchion::cli

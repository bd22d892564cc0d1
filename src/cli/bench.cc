#include "cli/bench.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/bench_report.h"
#include "cli/bench_run.h"
#include "cli/exit_codes.h"

namespace stanchion::cli {
namespace {

std::atomic<bool> interrupted{false};

void interrupt(int) {
  interrupted = true;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& app)
    : command_(app.add_subcommand("bench", "Measure an SQS endpoint, and check what it answers")) {
  command_->footer(
      "Without keys, requests carry a signature of nobody's; with $AWS_ACCESS_KEY_ID and\n"
      "$AWS_SECRET_ACCESS_KEY, each is signed. The exit status is 1 if anything that came was\n"
      "wrong: lost, damaged, out of order, refused.\n"
      "Examples:\n"
      "  stanchion bench --workload send --connections 64\n"
      "  stanchion bench --batch 10 --fifo --groups 1000 --duration 30\n"
      "  stanchion bench --workload send --rate 5000     # latency at half of what it can do\n"
      "  stanchion bench --workload wake-up --connections 8\n"
      "  stanchion bench --workload fdatasync --file .   # what the disk can do");
  add_flags();
}

void BenchCommand::add_flags() {
  bench::Options& o = options_;
  const auto option = [&](const char* flag, auto& value, const char* help) {
    return command_->add_option(flag, value, help)->capture_default_str()->take_last();
  };
  option("--workload", workload_,
         "send, receive, delete, cycle (send, receive and delete), wake-up (of a long poll), http "
         "(post to any URL), fdatasync (of a disk)");
  option("--endpoint", o.endpoint, "Where to send: http://, https:// or unix:/path");
  option("--protocol", protocol_, "json or query");
  option("--connections", o.connections, "Connections, each with one request under way");
  option("--body-size", o.body_size, "Bytes of a message's body");
  option("--batch", o.batch, "Messages per request, 1 to 10");
  option("--queues", o.queues, "Queues, which take turns");
  command_->add_flag("--fifo", o.fifo, "FIFO queues");
  option("--groups", o.groups, "Message groups per queue; of standard queues: tenants");
  option("--wait", o.wait, "Seconds that a receive of a cycle waits for messages");
  option("--rate", o.rate,
         "Requests (or cycles) per second, latency counted from when each was due; 0: as fast as "
         "answers come");
  option("--duration", o.seconds, "Seconds to measure");
  option("--warm-up", o.warm_up, "Seconds to run before that");
  option("--count", o.count, "Messages to measure, instead of a time");
  option("--backlog", o.backlog, "Messages to send before measuring, which stay waiting");
  option("--round", o.round, "Messages per queue of one round of receive and delete");
  option("--check", check_, "MD5s to verify: all, none, or every N-th; auto: all of small bodies");
  command_->add_option("--queue", o.queue,
                       "Use the queue of this name, made if it is missing and never deleted");
  command_->add_flag("--keep", o.keep, "Leave the queues and what is in them");
  command_->add_flag("--drain", o.drain, "In the end receive what is left, and check it");
  command_->add_flag("--anonymous", o.anonymous, "Send no signature");
  option("--region", o.region, "The region to sign for");
  command_->add_flag("--insecure-tls", o.insecure_tls, "Take any certificate");
  command_->add_option("--file", o.file, "Of fdatasync: the directory to write in");
  command_->add_option("--http-body", o.http_body, "Of http: what to post");
  command_->add_flag("--json", o.json, "Print the result as JSON");
  command_->add_flag("--quiet", o.quiet, "No progress on the terminal");
  command_->add_flag("--busy-poll", o.busy_poll,
                     "Never sleep while answers are due; for a client with a core to itself");
}

int BenchCommand::run() {
  std::vector<std::string> problems;
  if (const auto workload = bench::workload_named(workload_)) {
    options_.workload = *workload;
  } else {
    problems.push_back(fmt::format("--workload {}: there is no such one; see --help", workload_));
  }
  if (protocol_ == "query") {
    options_.protocol = bench::Protocol::kQuery;
  } else if (protocol_ != "json") {
    problems.push_back("--protocol must be json or query");
  }
  const auto every = parse_decimal(check_);
  if (check_ == "all") options_.check_every = 1;
  if (check_ == "none") options_.check_every = 0;
  if (every) options_.check_every = static_cast<std::size_t>(*every);
  if (!every && check_ != "all" && check_ != "none" && check_ != "auto")
    problems.push_back("--check must be all, none, auto or a number");
  if (!options_.anonymous) {
    options_.access_key_id = from_environment("AWS_ACCESS_KEY_ID");
    options_.secret = from_environment("AWS_SECRET_ACCESS_KEY");
    options_.session_token = from_environment("AWS_SESSION_TOKEN");
  }
  for (std::string& problem : bench::find_problems(options_))
    problems.push_back(std::move(problem));
  for (const std::string& problem : problems) fmt::print(stderr, "stanchion: {}\n", problem);
  if (!problems.empty()) return kExitSettings;

  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  const auto outcome = bench::run(options_, interrupted);
  if (!outcome) {
    fmt::print(stderr, "stanchion: {}\n", outcome.error().message);
    return kExitFailed;
  }
  fmt::print("{}", options_.json ? bench::to_json(options_, *outcome)
                                 : bench::to_table(options_, *outcome));
  return outcome->right(options_.fifo) ? kExitOk : kExitFailed;
}

}  // namespace stanchion::cli

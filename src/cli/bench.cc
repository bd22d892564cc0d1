#include "cli/bench.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/trust_flags.h"
#include "load/options.h"
#include "load/report.h"
#include "load/run.h"

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

// What the command line says, before it is checked.
struct Asked {
  load::Options options;
  std::string workload = "cycle";
  std::string protocol = "json";
  std::string check = "auto";
};

void add_flags(const Command& command, Asked& asked) {
  load::Options& o = asked.options;
  const auto option = [&](const char* flag, auto& value, const char* kind, const char* help) {
    command.option(flag, value, help).with_default().last_counts().value(kind);
  };
  option("--workload", asked.workload, "send|receive|delete|cycle|wake-up|http|fdatasync",
         "What to measure: send, receive, delete, cycle (send, receive and delete), wake-up (of a "
         "long poll), http (post to any URL), fdatasync (of a disk)");
  option("--endpoint", o.endpoint, "URL", "Where to send: http://, https:// or unix:/path");
  option("--protocol", asked.protocol, "json|query", "The protocol of SQS to speak");
  option("--connections", o.connections, "NUMBER", "Connections, each with one request at a time");
  option("--body-size", o.body_size, "NUMBER", "Bytes of a message's body");
  option("--batch", o.batch, "NUMBER", "Messages per request, 1 to 10");
  option("--queues", o.queues, "NUMBER", "Queues, which take turns");
  command.flag("--fifo", o.fifo, "FIFO queues");
  option("--groups", o.groups, "NUMBER", "Message groups per queue; of standard queues: tenants");
  option("--wait", o.wait, "SECONDS", "Seconds that a receive of a cycle waits for messages");
  option("--rate", o.rate, "NUMBER",
         "Requests (or cycles) per second, with latency from the time when each was due; 0: as "
         "fast as possible");
  option("--duration", o.seconds, "SECONDS", "Seconds to measure");
  option("--warm-up", o.warm_up, "SECONDS", "Seconds to run before that");
  option("--count", o.count, "NUMBER", "Messages to measure, instead of a time");
  option("--backlog", o.backlog, "NUMBER", "Messages to send before measuring, which stay waiting");
  option("--round", o.round, "NUMBER", "Messages per queue of one round of receive and delete");
  option("--check", asked.check, "all|none|auto|N",
         "MD5s to verify: all, none, or every N-th; auto: all of small bodies");
  command
      .option("--queue", o.queue,
              "Use the queue of this name; it is created if missing and never deleted")
      .value("NAME");
  command.flag("--keep", o.keep, "Keep the queues and their messages");
  command.flag("--drain", o.drain, "At the end, receive and check the remaining messages");
  command.flag("--anonymous", o.anonymous, "Send no signature");
  option("--region", o.region, "REGION", "The region to sign for");
  add_trust_flags(command, o.trust);
  command.option("--file", o.file, "Of fdatasync: the directory to write in").value("DIR");
  command.option("--http-body", o.http_body, "Of http: what to post").value("TEXT");
  command.flag("--json", o.json, "Print the result as JSON");
  command.flag("--quiet", o.quiet, "No progress on the terminal");
  command.flag("--busy-poll", o.busy_poll,
               "Never sleep while answers are due; for a client with a core to itself");
}

int run(Asked& asked) {
  load::Options& options = asked.options;
  std::vector<std::string> problems;
  if (const auto workload = load::workload_named(asked.workload)) {
    options.workload = *workload;
  } else {
    problems.push_back(
        fmt::format("--workload {}: there is no such workload; stanchion help bench lists them",
                    asked.workload));
  }
  if (asked.protocol == "query") {
    options.protocol = load::Protocol::kQuery;
  } else if (asked.protocol != "json") {
    problems.push_back("--protocol must be json or query");
  }
  const auto every = parse_decimal(asked.check);
  if (asked.check == "all") options.check_every = 1;
  if (asked.check == "none") options.check_every = 0;
  if (every) options.check_every = static_cast<std::size_t>(*every);
  if (!every && asked.check != "all" && asked.check != "none" && asked.check != "auto")
    problems.push_back("--check must be all, none, auto or a number");
  if (!options.anonymous) {
    options.access_key_id = from_environment("AWS_ACCESS_KEY_ID");
    options.secret = from_environment("AWS_SECRET_ACCESS_KEY");
    options.session_token = from_environment("AWS_SESSION_TOKEN");
  }
  for (std::string& problem : load::find_problems(options)) problems.push_back(std::move(problem));
  for (const std::string& problem : problems) complain(problem);
  if (!problems.empty()) return kExitSettings;

  ::signal(SIGINT, interrupt);
  ::signal(SIGTERM, interrupt);
  const auto outcome = load::run(options, interrupted, complain);
  if (!outcome) {
    complain(outcome.error().message);
    return kExitFailed;
  }
  fmt::print("{}",
             options.json ? load::to_json(options, *outcome) : load::to_table(options, *outcome));
  return outcome->right(options.fifo) ? kExitOk : kExitFailed;
}

}  // namespace

void add_bench(Program& program) {
  const auto asked = std::make_shared<Asked>();
  Command command = program.add("bench", "Measure an SQS endpoint, and check its answers",
                                [asked] { return run(*asked); });
  add_flags(command, *asked);
  command.notes(
      "Without keys, requests carry a dummy signature; with $AWS_ACCESS_KEY_ID and\n"
      "$AWS_SECRET_ACCESS_KEY, each is signed. The exit status is 1 if any message was lost,\n"
      "damaged or out of order, or any call refused.\n"
      "Examples:\n"
      "  stanchion bench --workload send --connections 64\n"
      "  stanchion bench --batch 10 --fifo --groups 1000 --duration 30\n"
      "  stanchion bench --workload send --rate 5000     # latency at a fixed rate\n"
      "  stanchion bench --workload wake-up --connections 8\n"
      "  stanchion bench --workload fdatasync --file .   # the speed of the disk");
}

}  // namespace stanchion::cli

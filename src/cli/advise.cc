#include "cli/advise.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "client/client.h"

namespace stanchion::cli {
namespace {

namespace json = boost::json;

struct AdviseSettings {
  std::string endpoint = "http://127.0.0.1:9324";
  bool json = false;
};

int advise(const AdviseSettings& settings) {
  client::Options options;
  options.endpoint = settings.endpoint;
  auto client = client::Client::open(options);
  if (!client) return complain(client.error().to_string()), kExitSettings;
  const auto outcome = client->stanchion_advice();
  if (!outcome) return give_up(printable(outcome.error().to_string()), kExitFailed);
  for (const client::QueueAdvice& advice : outcome->advice) {
    if (settings.json) {
      json::object line{
          {"QueueUrl", advice.queue_url}, {"Kind", advice.kind}, {"Text", advice.text}};
      if (advice.command) line["Command"] = *advice.command;
      fmt::print("{}\n", printable_json(json::serialize(line)));
    } else {
      fmt::print("{}: {}\n  {}\n", printable(advice.queue_url), printable(advice.kind),
                 printable(advice.text));
      if (advice.command) fmt::print("  $ {}\n", printable(*advice.command));
    }
  }
  if (outcome->left_out)
    fmt::print(stderr, "{} more are not shown: follow these, then ask again.\n",
               *outcome->left_out);
  if (!settings.json && outcome->advice.empty()) fmt::print("No advice: everything looks fine.\n");
  return kExitOk;
}

}  // namespace

void add_advise(Program& program) {
  const auto settings = std::make_shared<AdviseSettings>();
  Command command = program.add("advise", "Suggest improvements to queues and their clients",
                                [settings] { return advise(*settings); });
  command.option("--endpoint", settings->endpoint, "The server").value("URL").with_default();
  command.flag("--json", settings->json, "Print one JSON object per line");
  command.notes(
      "Advice is based on the calls of the last few minutes and on the queues' "
      "attributes,\n"
      "for the caller's account and region. Credentials and region come from the "
      "environment,\n"
      "as for the AWS CLI. A server that runs with --strict gives no advice.\n"
      "Example:\n"
      "  stanchion advise --endpoint http://127.0.0.1:9324");
}

}  // namespace stanchion::cli

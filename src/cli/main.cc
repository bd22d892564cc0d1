// stanchion: one program, several commands.
#include <CLI/CLI.hpp>
#include <string>

#include "cli/inspect.h"
#include "cli/server.h"
#include "cli/settings.h"

namespace {

using namespace stanchion::cli;

void add_serve(CLI::App& app, ServeSettings& settings, std::string& listen) {
  CLI::App* serve = app.add_subcommand("serve", "Start the server");
  serve->footer(
      "Example:\n"
      "  stanchion serve --data ./stanchion-data\n"
      "  aws --endpoint-url http://127.0.0.1:9324 sqs create-queue --queue-name hello");
  serve->add_option("--listen", listen, "Where to listen: HOST:PORT")
      ->default_str("127.0.0.1:9324");
  auto* data = serve->add_option("--data", settings.data, "The directory that holds the data")
                   ->capture_default_str();
  serve->add_flag("--in-memory", settings.in_memory, "Keep nothing on disk")->excludes(data);
  serve->add_flag("--insecure", settings.insecure,
                  "Let anyone who reaches the address do anything, also from other machines");
  serve->add_flag("--strict", settings.strict,
                  "Impose also those rules of AWS that come from its slow propagation: 60 s "
                  "between purges, 60 s before a deleted name can be used again");
  serve->add_flag("--virtual-time", settings.virtual_time,
                  "For tests: let POST /_stanchion/clock move the server's time forward");
  serve->add_flag("--regions", settings.separate_regions,
                  "Make each region that clients sign for a space of its own");
  serve->add_option("--threads", settings.threads, "Threads that serve requests; 0: one per CPU")
      ->capture_default_str();
  serve
      ->add_option("--shards", settings.shards,
                   "Into how many shards a new data directory is divided, for good; 0: one per "
                   "thread")
      ->capture_default_str();
  serve->add_option("--account", settings.account, "The account that queues belong to")
      ->capture_default_str();
  serve->add_option("--region", settings.region, "The region that queues are in")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Stanchion: Amazon SQS on your own machines"};
  app.set_version_flag("--version", std::string("stanchion ") + STANCHION_VERSION);
  app.require_subcommand(1);

  ServeSettings serve_settings;
  std::string listen = "127.0.0.1:9324";
  add_serve(app, serve_settings, listen);

  InspectSettings inspect_settings;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "Print what a data directory holds, without changing it");
  inspect_command->add_option("DIR", inspect_settings.data, "The data directory")->required();
  inspect_command->add_flag("--facts", inspect_settings.facts, "Print every fact of the journal");
  inspect_command->add_flag("--messages", inspect_settings.messages, "Print every message");

  CLI11_PARSE(app, argc, argv);

  if (app.got_subcommand("inspect")) return inspect(inspect_settings);
  const auto address = parse_listen(listen);
  if (!address) {
    std::fprintf(stderr, "stanchion: %s\n", address.error().message.c_str());
    return 1;
  }
  serve_settings.listen = *address;
  return serve(serve_settings);
}

#include "cli/health.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/exit_codes.h"
#include "base/printable.h"
#include "base/terminal.h"
#include "cli/program.h"
#include "cli/trust_flags.h"
#include "net/http_client.h"
#include "settings/local_url.h"
#include "settings/settings_sources.h"

namespace stanchion::cli {
namespace {

// A server that takes longer is not ready, whatever it would answer.
constexpr std::chrono::seconds kHealthTimeMax(5);

struct HealthSettings {
  std::string url;
  net::TlsTrust trust;
};

// Asks /health/ready.
int health(const std::string& text, const net::TlsTrust& trust) {
  auto url = net::parse_url(text);
  if (!url) return give_up(fmt::format("--url: {}", url.error().message), kExitFailed);
  url->path = "/health/ready";
  net::HttpClient client({.trust = trust, .request_timeout = kHealthTimeMax});
  const auto reply = client.call({.url = *url, .keep_alive = false});
  if (!reply) return give_up(fmt::format("{}: {}", text, reply.error().message), kExitFailed);
  fmt::print("{}", printable_lines(reply->body));
  return reply->status == 200 ? kExitOk : kExitFailed;
}

// A server in the same container reads the same file and environment. They need not be complete,
// since the server may have been given flags besides.
int health_of_this_machine(net::TlsTrust trust) {
  const settings::Loaded loaded =
      settings::load_settings({.config = std::nullopt, .environment = std::getenv, .flags = {}});
  // The address is this machine's own, and the certificate is made for the name that clients use:
  // verifying it for that address would always fail.
  if (trust.ca_file.empty()) trust.verify = false;
  return health(settings::local_url(loaded.settings), trust);
}

}  // namespace

void add_health(Program& program) {
  const auto settings = std::make_shared<HealthSettings>();
  Command command =
      program.add("health", "Exit with 0 if the server is ready, else with 1", [settings] {
        return settings->url.empty() ? health_of_this_machine(settings->trust)
                                     : health(settings->url, settings->trust);
      });
  command
      .option("--url", settings->url,
              "The server: http://, https:// or unix:/path; unless given, this machine's, at "
              "the address in the file and the environment")
      .value("URL");
  add_trust_flags(command, settings->trust);
  command.notes(
      "Needs no key. With --url, the server's certificate is verified; without it, "
      "that of this\n"
      "machine's server is verified only with --ca, since it seldom names the "
      "address.\n"
      "Example:\n"
      "  stanchion health --url https://queues.example.com --ca ca.pem");
}

}  // namespace stanchion::cli

#include "cli/trust_flags.h"

#include <CLI/CLI.hpp>

namespace stanchion::cli {

void add_trust_flags(CLI::App& command, net::TlsTrust& trust) {
  CLI::Option* ca = command
                        .add_option("--ca", trust.ca_file,
                                    "PEM file: the certificates of authorities, or the server's "
                                    "own, to trust over https instead of the system's")
                        ->type_name("FILE");
  command
      .add_flag_callback(
          "--no-verify", [&trust] { trust.verify = false; },
          "Accept any certificate: do not verify the server")
      ->excludes(ca);
}

}  // namespace stanchion::cli

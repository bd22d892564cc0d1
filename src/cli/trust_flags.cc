#include "cli/trust_flags.h"

namespace stanchion::cli {

void add_trust_flags(const Command& command, net::TlsTrust& trust) {
  Option ca = command
                  .option("--ca", trust.ca_file,
                          "PEM file: the certificates of authorities, or the server's "
                          "own, to trust over https instead of the system's")
                  .value("FILE");
  command
      .flag(
          "--no-verify", [&trust] { trust.verify = false; },
          "Accept any certificate: do not verify the server")
      .excludes(ca);
}

}  // namespace stanchion::cli

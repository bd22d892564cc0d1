// --ca and --no-verify, for a command that calls a server.
#pragma once

#include "net/tls_client.h"

namespace CLI {
class App;
}

namespace stanchion::cli {

void add_trust_flags(CLI::App& command, net::TlsTrust& trust);

}  // namespace stanchion::cli

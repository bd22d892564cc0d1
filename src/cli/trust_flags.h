// --ca and --no-verify, for a command that calls a server.
#pragma once

#include "cli/command.h"
#include "net/tls_client.h"

namespace stanchion::cli {

void add_trust_flags(const Command& command, net::TlsTrust& trust);

}  // namespace stanchion::cli

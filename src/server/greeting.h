// The lines that a server prints once it is ready, one of which is to be copied and tried.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "settings/settings.h"

namespace stanchion::server {

// A command line that works with this server, as it stands, in a shell on this machine. `port` is
// the port actually listened on, `program` how to call the program there.
//
// Without accounts it creates a queue, with arbitrary credentials. With accounts it does the same
// with a key whose secret is in a file; a secret that stands in the settings is not shown, so then
// the command asks for the server's health, which needs no key.
std::string line_to_try(const settings::Settings& settings, std::uint16_t port,
                        const std::string& program, Instant now);

// How to call this program: by its name if shells find it, else by its path.
std::string name_of_this_program();

// Quotes a word of a command line for a shell.
std::string shell_word(const std::string& text);

}  // namespace stanchion::server

// The lines that a server says once it is ready, of which one is to be copied and tried.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "settings/settings.h"

namespace stanchion::cli {

// A command line that does something with this server, as it stands, in a shell on this machine.
// `port` is where it really listens, `program` how the program is called there.
//
// Without accounts it makes a queue, with credentials that are any. With accounts it does the same
// with a key whose secret is in a file; a secret that stands in the settings is not shown, so then
// it asks for the server's health, which needs none.
std::string line_to_try(const settings::Settings& settings, std::uint16_t port,
                        const std::string& program, Instant now);

// How this program is called: by its name if shells find it, else by its path.
std::string name_of_this_program();

// A word of a command line as it must be written for a shell.
std::string shell_word(const std::string& text);

}  // namespace stanchion::cli

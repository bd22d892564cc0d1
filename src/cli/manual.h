// The manual page, stanchion.1, generated from the same descriptions as --help.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_text.h"

namespace stanchion::cli {

// In the language of man(7).
std::string to_manual(const ProgramText& program, std::string_view version);

}  // namespace stanchion::cli

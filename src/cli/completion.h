// `stanchion completion`: what bash, zsh and fish offer when Tab is pressed.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_text.h"

namespace stanchion::cli {

// Scripts for the shell; they contain all commands, flags and the values of choices.
std::string to_bash_completion(const ProgramText& program);
std::string to_zsh_completion(const ProgramText& program);
std::string to_fish_completion(const ProgramText& program);

class Program;
void add_completion(Program& program);

}  // namespace stanchion::cli

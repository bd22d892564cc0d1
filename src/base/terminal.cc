#include "base/terminal.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/printable.h"

namespace stanchion {
namespace {

constexpr std::size_t kShownMax = 80;

}  // namespace

void complain(std::string_view problem) {
  // It may quote a server, a file or a command line.
  const std::string line = fmt::format("stanchion: {}\n", printable_lines(problem));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int give_up(std::string_view problem, int exit_code) {
  complain(problem);
  return exit_code;
}

void announce(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
  std::clearerr(stdout);
}

std::string shown(std::string_view typed) {
  std::string out;
  while (!typed.empty()) {
    if (out.size() >= kShownMax) return out + "…";
    // Not in the middle of a character.
    const std::size_t size = first_character(typed).size;
    out += printable(typed.substr(0, size));
    typed.remove_prefix(size);
  }
  return out;
}

}  // namespace stanchion

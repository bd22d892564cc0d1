// `stanchion repair`: what is readable of a damaged store is brought back, and what is not is
// named.
#pragma once

#include <string>

namespace stanchion::cli {

struct RepairSettings {
  std::string data;
  bool only_look = false;
};

int repair(const RepairSettings& settings);

class Program;
void add_repair(Program& program);

}  // namespace stanchion::cli

// `stanchion repair`: recovers the readable part of a damaged store, and reports what is lost.
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

// `stanchion inspect`: what a data directory holds, without changing it. What a log of a fleet
// holds is in inspect_log.h.
#pragma once

#include <string>

namespace stanchion::cli {

struct InspectSettings {
  std::string data;
  bool facts = false;     // Print every fact.
  bool messages = false;  // Print every message.
  bool json = false;      // As JSON instead of text.
};

// Returns 0 if everything is readable, 1 if something is damaged or missing.
int inspect(const InspectSettings& settings);

class Program;
void add_inspect(Program& program);

}  // namespace stanchion::cli

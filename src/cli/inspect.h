// `stanchion inspect`: what a data directory holds, without changing it.
#pragma once

#include <string>

namespace stanchion::cli {

struct InspectSettings {
  std::string data;
  bool facts = false;     // Print every fact.
  bool messages = false;  // Print every message.
};

// Returns 0 if everything is readable, 1 if something is damaged or missing.
int inspect(const InspectSettings& settings);

}  // namespace stanchion::cli

// The settings of a run, combined from all their sources.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "settings/settings.h"

namespace stanchion::settings {

// The values on the command line, by the setting's name, as "server.listen".
using FlagValues = std::map<std::string, std::string, std::less<>>;

// The value of an environment variable, or null; ::getenv fits.
using Environment = std::function<const char*(const char* name)>;

struct Sources {
  std::optional<std::string> config;  // --config; else the first of kDefaultFiles that exists.
  Environment environment;
  FlagValues flags;
  // The names of all variables. One that is close to a setting's name is reported as a typing
  // error; others that begin with STANCHION_ are ignored, because Kubernetes sets some for a
  // service of that name.
  std::vector<std::string> variables = {};
};

// The names of the variables of this process.
std::vector<std::string> variables_of_process();

inline constexpr const char* kDefaultFiles[] = {"stanchion.toml", "/etc/stanchion/stanchion.toml"};

struct Loaded {
  Settings settings;
  std::vector<std::string> problems;  // If there are any, the settings must not be used.
};

// Reads the values without looking at them as a whole: for commands that need only some.
Loaded read_sources(const Sources& sources);

// Reads everything anew: at the start, and again when the server is told to reload.
Loaded load_settings(const Sources& sources);

// The names of the values that differ and that take effect only with a restart.
std::vector<std::string> differences(Settings before, Settings after);

}  // namespace stanchion::settings

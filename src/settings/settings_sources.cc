#include "settings/settings_sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/nearest_word.h"
#include "settings/settings_file.h"

namespace stanchion::settings {
namespace {

constexpr std::string_view kPrefix = "STANCHION_";
constexpr const char* kConfigVariable = "STANCHION_CONFIG";

// A directory named in a later place wins over an in_memory of an earlier one.
void let_data_win(Settings& settings, bool data_set, bool in_memory_set) {
  if (data_set && !in_memory_set) settings.server.in_memory = false;
}

void read_environment(const Environment& environment, Loaded& loaded) {
  bool data_set = false;
  bool in_memory_set = false;
  for (const Setting& setting : list_settings(loaded.settings)) {
    const std::string name = setting.environment();
    const char* value = environment ? environment(name.c_str()) : nullptr;
    if (value == nullptr) continue;
    if (const Status set = setting.set(value); !set)
      loaded.problems.push_back(fmt::format("{}: {}", name, set.error().message));
    loaded.settings.origins[setting.name()] = name;
    data_set = data_set || setting.name() == "server.data";
    in_memory_set = in_memory_set || setting.name() == "server.in_memory";
  }
  let_data_win(loaded.settings, data_set, in_memory_set);
}

void find_slips(const std::vector<std::string>& variables, Loaded& loaded) {
  std::vector<std::string> names{std::string(kConfigVariable)};
  for (const Setting& setting : list_settings(loaded.settings))
    names.push_back(setting.environment());
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kPrefix) || std::ranges::find(known, variable) != known.end())
      continue;
    if (const std::string_view near = nearest_word(variable, known); !near.empty())
      loaded.problems.push_back(
          fmt::format("{}: there is no such setting; did you mean {}?", variable, near));
  }
}

void read_flags(const FlagValues& flags, Loaded& loaded) {
  for (const Setting& setting : list_settings(loaded.settings)) {
    const auto value = flags.find(setting.name());
    if (value == flags.end()) continue;
    if (const Status set = setting.set(value->second); !set)
      loaded.problems.push_back(fmt::format("{}: {}", setting.flag(), set.error().message));
    loaded.settings.origins[setting.name()] = setting.flag();
  }
  let_data_win(loaded.settings, flags.contains("server.data"), flags.contains("server.in_memory"));
}

std::optional<std::string> file_to_read(const Sources& sources) {
  if (sources.config) return sources.config;
  const char* named = sources.environment ? sources.environment(kConfigVariable) : nullptr;
  if (named != nullptr) return std::string(named);
  for (const char* file : kDefaultFiles)
    if (::access(file, F_OK) == 0) return std::string(file);
  return std::nullopt;
}

// A secret is not shown by value(), but a new one is a difference.
bool differ(const Setting& before, const Setting& after) {
  if (NamedValues* const* named = std::get_if<NamedValues*>(&before.place))
    return **named != *std::get<NamedValues*>(after.place);
  return before.value() != after.value();
}

}  // namespace

std::vector<std::string> variables_of_process() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

Loaded read_sources(const Sources& sources) {
  Loaded loaded;
  if (const auto file = file_to_read(sources))
    loaded.problems = read_settings_file(*file, loaded.settings);
  read_environment(sources.environment, loaded);
  find_slips(sources.variables, loaded);
  read_flags(sources.flags, loaded);
  return loaded;
}

Loaded load_settings(const Sources& sources) {
  Loaded loaded = read_sources(sources);
  // Further problems that follow from a wrong value would only hide it.
  if (loaded.problems.empty()) loaded.problems = find_problems(loaded.settings);
  return loaded;
}

std::vector<std::string> differences(Settings before, Settings after) {
  const auto old_values = list_settings(before);
  const auto new_values = list_settings(after);
  CHECK(old_values.size() == new_values.size(), "both come from one table");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < old_values.size(); ++i)
    if (differ(old_values[i], new_values[i])) names.push_back(old_values[i].name());
  return names;
}

}  // namespace stanchion::settings

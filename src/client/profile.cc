#include "client/profile.h"

#include <fmt/format.h>

#include "client/small_file.h"

namespace stanchion::client {
namespace {

constexpr std::size_t kProfileFileBytesMax = 1 << 20;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Removes a comment after the value, which begins with a space and a mark.
std::string_view without_comment(std::string_view value) {
  for (std::size_t at = 0; at < value.size(); ++at)
    if ((value[at] == '#' || value[at] == ';') &&
        (at == 0 || value[at - 1] == ' ' || value[at - 1] == '\t'))
      return trimmed(value.substr(0, at));
  return value;
}

// "[profile  x]" is "profile x".
std::string section_name(std::string_view line) {
  const std::string_view inside = trimmed(line.substr(1, line.find(']') - 1));
  const std::size_t space = inside.find_first_of(" \t");
  if (space == std::string_view::npos) return std::string(inside);
  return fmt::format("{} {}", inside.substr(0, space), trimmed(inside.substr(space)));
}

// Empty if there is no such file.
Result<std::string> read_text(const std::string& path) {
  auto text = read_small_file(path, kProfileFileBytesMax);
  if (!text) return std::unexpected(text.error());
  return std::move(*text).value_or("");
}

std::string path_of(const char* variable, const char* below_home, const Environment& environment) {
  if (const auto path = environment(variable)) return *path;
  const auto home = environment("HOME");
  return home ? fmt::format("{}/.aws/{}", *home, below_home) : std::string();
}

}  // namespace

IniFile parse_ini(std::string_view text) {
  IniFile file;
  std::map<std::string, std::string>* section = nullptr;
  std::string parent;  // The setting without a value to which indented lines belong.
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      parent.clear();
      const bool closed = line.find(']') != std::string_view::npos;
      section = closed ? &file[section_name(line)] : nullptr;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos) continue;
    const bool nested = (whole.front() == ' ' || whole.front() == '\t') && !parent.empty();
    std::string name(trimmed(line.substr(0, equals)));
    const std::string_view value = without_comment(trimmed(line.substr(equals + 1)));
    if (!nested) parent = value.empty() ? name : std::string();
    (*section)[nested ? fmt::format("{}.{}", parent, name) : std::move(name)] = value;
  }
  return file;
}

std::optional<std::string> Profile::get(const std::string& setting) const {
  const auto found = settings.find(setting);
  if (found == settings.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

Result<Profile> load_profile(const std::string& name, const Environment& environment) {
  Profile profile{.name = name.empty() ? environment("AWS_PROFILE").value_or("default") : name};
  const std::string credentials_path =
      path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials", environment);
  const std::string config_path = path_of("AWS_CONFIG_FILE", "config", environment);
  auto credentials_text = read_text(credentials_path);
  if (!credentials_text) return std::unexpected(credentials_text.error());
  auto config_text = read_text(config_path);
  if (!config_text) return std::unexpected(config_text.error());
  const IniFile credentials = parse_ini(*credentials_text);
  const IniFile config = parse_ini(*config_text);
  // The config file calls every profile except the default one "profile NAME".
  for (const auto& [file, section] :
       {std::pair(&credentials, profile.name), std::pair(&config, "profile " + profile.name),
        std::pair(&config, profile.name == "default" ? profile.name : std::string())}) {
    const auto found = file->find(section);
    if (found == file->end()) continue;
    profile.exists = true;
    profile.settings.insert(found->second.begin(), found->second.end());
  }
  if (const auto services = profile.get("services")) {
    const auto section = config.find("services " + *services);
    if (section != config.end()) {
      const auto url = section->second.find("sqs.endpoint_url");
      if (url != section->second.end()) profile.sqs_endpoint_url = url->second;
    }
  }
  const bool asked_for = !name.empty() || environment("AWS_PROFILE");
  if (asked_for && !profile.exists)
    return fail(fmt::format("there is no profile {} in {} or {}", profile.name, credentials_path,
                            config_path));
  return profile;
}

}  // namespace stanchion::client

#include "settings/secret_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace stanchion::settings {
namespace {

namespace fs = std::filesystem;

std::optional<mode_t> mode_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return found.st_mode;
}

// If the permissions cannot be read, there is no warning: reading the file will report what is
// wrong.
std::optional<std::string> exposure_of(const std::string& file, std::string_view holds) {
  std::error_code problem;
  const fs::path path = fs::canonical(file, problem);
  if (problem) return std::nullopt;
  for (fs::path above = path; above != above.root_path();) {
    above = above.parent_path();
    const auto mode = mode_of(above);
    if (!mode || (*mode & S_IXOTH) == 0) return std::nullopt;
  }
  const mode_t mode = mode_of(path).value_or(0);
  if ((mode & (S_IROTH | S_IWOTH)) == 0) return std::nullopt;
  return fmt::format("everybody on this machine can {} {}, which holds {}: chmod o-rw {}",
                     (mode & S_IWOTH) != 0 ? "change" : "read", file, holds, file);
}

// A token from elsewhere, such as the environment, may count as one of the file's: better a warning
// too many.
bool holds_secrets(const Settings& settings) {
  if (!settings.metrics.token.empty()) return true;
  for (const auto& [name, value] : settings.fleet.kafka_settings.values)
    if (is_secret_of_kafka(name)) return true;
  return std::ranges::any_of(settings.accounts, [](const AccountSettings& account) {
    return std::ranges::any_of(account.keys, [](const KeySettings& key) {
      return key.secret_file.empty() || key.session_token.has_value();
    });
  });
}

}  // namespace

std::vector<std::string> exposed_secrets(const Settings& settings) {
  std::vector<std::string> warnings;
  const auto look_at = [&](const std::string& file, std::string_view holds) {
    if (file.empty()) return;
    auto warning = exposure_of(file, holds);
    if (warning && std::ranges::find(warnings, *warning) == warnings.end())
      warnings.push_back(*std::move(warning));
  };
  if (holds_secrets(settings)) look_at(settings.file, "secrets");
  for (const AccountSettings& account : settings.accounts)
    for (const KeySettings& key : account.keys)
      look_at(key.secret_file, fmt::format("the secret of key {}", key.id));
  look_at(settings.tls.key, "the TLS private key");
  look_at(settings.fleet.tls_key, "the private key of this node");
  look_at(settings.fleet.secret_file, "the secret of the fleet");
  look_at(settings.fleet.accepted_secret_file, "another secret of the fleet");
  return warnings;
}

}  // namespace stanchion::settings

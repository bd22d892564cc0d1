#include "server/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "settings/local_url.h"

namespace stanchion::server {
namespace {

// A key that can be used without showing a secret.
const settings::KeySettings* key_to_try(const settings::Settings& settings, Instant now) {
  for (const settings::AccountSettings& account : settings.accounts)
    for (const settings::KeySettings& key : account.keys)
      if (!key.secret_file.empty() && !key.session_token && key.expires > now) return &key;
  return nullptr;
}

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::absolute(path, error);
  return error ? path : found.string();
}

std::string health_line(const settings::Settings& settings, const std::string& program) {
  // A certificate seldom contains the machine's address, which is used here.
  const bool tls = settings.server.unix_socket.empty() && !settings.tls.certificate.empty();
  return fmt::format("{} health --url {}{}", shell_word(program),
                     shell_word(settings::local_url(settings)), tls ? " --no-verify" : "");
}

}  // namespace

std::string shell_word(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out.push_back(c);
    }
  }
  return out + "'";
}

std::string name_of_this_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || path == "/usr/bin/stanchion" || path == "/usr/local/bin/stanchion")
    return "stanchion";
  return path.string();
}

std::string line_to_try(const settings::Settings& settings, std::uint16_t port,
                        const std::string& program, Instant now) {
  settings::Settings found = settings;
  found.server.listen.port = port;
  if (!found.server.unix_socket.empty()) {
    found.server.unix_socket = absolute(found.server.unix_socket);
    return health_line(found, program);
  }
  std::string credentials = "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=thing";
  if (!found.accounts.empty()) {
    const settings::KeySettings* key = key_to_try(found, now);
    if (key == nullptr) return health_line(found, program);
    credentials = fmt::format("AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY=\"$(cat {})\"",
                              shell_word(key->id), shell_word(absolute(key->secret_file)));
  }
  return fmt::format("{} aws{} --endpoint-url {} --region {} sqs create-queue --queue-name hello",
                     credentials, found.tls.certificate.empty() ? "" : " --no-verify-ssl",
                     shell_word(settings::local_url(found)), found.server.region);
}

}  // namespace stanchion::server

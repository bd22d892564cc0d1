#include "settings/toml_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/printable.h"
#include "base/text.h"

namespace stanchion::settings {
namespace {

bool is_bare_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

void append_map(std::string& out, std::string_view title, const StringMap& map, bool typed) {
  if (map.empty()) return;
  fmt::format_to(std::back_inserter(out), "[queue.{}]\n", title);
  for (const auto& [key, value] : map)
    fmt::format_to(std::back_inserter(out), "{} = {}\n", toml_key(key),
                   typed ? toml_scalar(value) : toml_string(value));
}

std::string to_toml(const AccountSettings& account) {
  std::string out = fmt::format("[[account]]\nid = {}\n", toml_string(account.id));
  for (const KeySettings& key : account.keys) {
    out += fmt::format("[[account.key]]\nid = {}\n", toml_string(key.id));
    out += key.secret_file.empty()
               ? fmt::format("secret = {}\n", toml_string(kHidden))
               : fmt::format("secret_file = {}\n", toml_string(key.secret_file));
    if (!key.user.empty()) out += fmt::format("user = {}\n", toml_string(key.user));
    if (key.session_token) out += fmt::format("session_token = {}\n", toml_string(kHidden));
    if (key.expires != kNever)
      out += fmt::format("expires = {:%Y-%m-%dT%H:%M:%SZ}\n",
                         fmt::gmtime(static_cast<std::time_t>(to_seconds(key.expires))));
  }
  return out;
}

bool hides_secrets(const Settings& settings) {
  if (!settings.metrics.token.empty()) return true;
  for (const auto& [name, value] : settings.fleet.kafka_settings.values)
    if (is_secret_of_kafka(name)) return true;
  for (const AccountSettings& account : settings.accounts)
    for (const KeySettings& key : account.keys)
      if (key.secret_file.empty() || key.session_token) return true;
  return false;
}

}  // namespace

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const FirstCharacter first = first_character(text);
    if (first.code == '"' || first.code == '\\') {
      out += '\\';
      out += text.front();
    } else if (first.code == '\n') {
      out += "\\n";
    } else if (first.code == '\t') {
      out += "\\t";
    } else if (first.is_utf8 && is_unprintable(first.code)) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(first.code));
    } else {
      out += text.substr(0, first.size);
    }
    text.remove_prefix(first.size);
  }
  return out + '"';
}

std::string toml_key(std::string_view text) {
  const bool bare = !text.empty() && std::ranges::all_of(text, is_bare_key_character);
  return bare ? std::string(text) : toml_string(text);
}

std::string toml_scalar(std::string_view text) {
  if (text == "true" || text == "false") return std::string(text);
  const auto number = parse_decimal(text);
  // A value may lose its quotes only if it is printed the same way again.
  if (number && *number < (std::uint64_t{1} << 53) && fmt::to_string(*number) == text)
    return std::string(text);
  return toml_string(text);
}

std::string to_toml(const QueueSettings& queue) {
  std::string out = fmt::format("[[queue]]\nname = {}\n", toml_string(queue.name));
  if (!queue.account.empty()) out += fmt::format("account = {}\n", toml_string(queue.account));
  if (!queue.region.empty()) out += fmt::format("region = {}\n", toml_string(queue.region));
  append_map(out, "attributes", queue.attributes, true);
  append_map(out, "tags", queue.tags, false);
  if (queue.redrive)
    out += fmt::format("[queue.redrive]\ndead_letter = {}\nmax_receive_count = {}\n",
                       toml_string(queue.redrive->dead_letter), queue.redrive->max_receive_count);
  return out;
}

std::string to_toml(Settings settings) {
  std::string out;
  std::string_view section;
  for (const Setting& setting : list_settings(settings)) {
    if (setting.section != section) {
      section = setting.section;
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    const bool hide = setting.is_secret() && setting.value() != toml_string("");
    out += fmt::format("{} = {}\n", setting.key, hide ? toml_string(kHidden) : setting.value());
  }
  if (hides_secrets(settings))
    out += fmt::format(
        "\n"
        "# {} replaces secrets; no server accepts it as one.\n",
        kHidden);
  for (const AccountSettings& account : settings.accounts) out += "\n" + to_toml(account);
  for (const QueueSettings& queue : settings.queues) out += "\n" + to_toml(queue);
  return out;
}

}  // namespace stanchion::settings

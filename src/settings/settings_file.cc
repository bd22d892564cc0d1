#include "settings/settings_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <set>

#include "base/nearest_word.h"
#include "base/text.h"
#include "model/ids.h"
#include "os/fd.h"

namespace stanchion::settings {
namespace {

constexpr std::size_t kFileSizeMax = 16 << 20;
constexpr std::size_t kSecretSizeMax = 4096;
constexpr int kPipeMillisMax = 10'000;
constexpr std::size_t kKeyIdSizeMax = 128;
constexpr std::string_view kHiddenProblem =
    "this is what --print-config shows instead of a secret; put the secret back";

std::string_view name_of_type(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

// Converts a number, string or boolean to the text that it would have in the environment.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<Instant> to_instant(const toml::date_time& t) {
  using namespace std::chrono;
  if (!t.offset) return std::nullopt;
  const year_month_day day{year(t.date.year), month(t.date.month), std::chrono::day(t.date.day)};
  if (!day.ok()) return std::nullopt;
  const auto at = sys_days(day) + hours(t.time.hour) + minutes(t.time.minute) +
                  seconds(t.time.second) - minutes(t.offset->minutes);
  return from_millis(duration_cast<milliseconds>(at.time_since_epoch()).count());
}

class Reader {
 public:
  Reader(const std::string& file, Settings& settings) : file_(file), settings_(settings) {}

  void read(const toml::table& root) {
    const std::vector<Setting> all = list_settings(settings_);
    std::vector<std::string_view> sections{"account", "queue"};
    for (const Setting& setting : all)
      if (std::ranges::find(sections, setting.section) == sections.end())
        sections.push_back(setting.section);
    for (const auto& [key, node] : root) {
      if (key.str() == "account") {
        each_table(node, "account", [this](const toml::table& t) { read_account(t); });
      } else if (key.str() == "queue") {
        each_table(node, "queue", [this](const toml::table& t) { read_queue(t); });
      } else if (std::ranges::find(sections, key.str()) == sections.end()) {
        unknown(key, "", sections);
      } else if (const auto* table = as_table(node, key.str())) {
        read_section(*table, key.str(), all);
      }
    }
  }

  void problem(const toml::source_region& where, std::string_view name, std::string_view what) {
    problems_.push_back(fmt::format("{}{}: {}", place(where), name, what));
  }

  std::vector<std::string> take_problems() { return std::move(problems_); }

 private:
  using Handler = std::function<void(const toml::node&, const std::string& name)>;
  using Handlers = std::map<std::string_view, Handler>;

  std::string line_of(const toml::source_region& where) const {
    return fmt::format("{}:{}", file_, where.begin.line);
  }
  std::string place(const toml::source_region& where) const { return line_of(where) + ": "; }

  // Where the value is, or, if it is missing, the table that should have it.
  static const toml::source_region& where(const toml::table& table, std::string_view key) {
    const toml::node* value = table.get(key);
    return value == nullptr ? table.source() : value->source();
  }

  void unknown(const toml::key& key, std::string_view prefix,
               const std::vector<std::string_view>& known) {
    const std::string_view near = nearest_word(key.str(), known);
    problem(key.source(), fmt::format("{}{}", prefix, key.str()),
            near.empty()
                ? fmt::format("there is no such setting; known are {}", fmt::join(known, ", "))
                : fmt::format("there is no such setting; did you mean {}?", near));
  }

  void wrong_type(const toml::node& node, std::string_view name, std::string_view wanted) {
    problem(node.source(), name, fmt::format("must be {}, not {}", wanted, name_of_type(node)));
  }

  const toml::table* as_table(const toml::node& node, std::string_view name) {
    if (!node.is_table()) wrong_type(node, name, "a table");
    return node.as_table();
  }

  void each_table(const toml::node& node, std::string_view name,
                  const std::function<void(const toml::table&)>& read_one) {
    const auto* list = node.as_array();
    if (list == nullptr)
      return wrong_type(node, name, fmt::format("an array of tables, [[{}]]", name));
    for (const toml::node& entry : *list)
      if (const auto* table = as_table(entry, name)) read_one(*table);
  }

  // Every key is passed to its handler; a key without a handler is a problem.
  void dispatch(const toml::table& table, const std::string& prefix, const Handlers& handlers) {
    for (const auto& [key, node] : table) {
      const auto handler = handlers.find(key.str());
      if (handler == handlers.end()) {
        std::vector<std::string_view> known;
        for (const auto& entry : handlers) known.push_back(entry.first);
        unknown(key, prefix, known);
      } else {
        handler->second(node, prefix + std::string(key.str()));
      }
    }
  }

  Handler string_into(std::string& out) {
    return [this, &out](const toml::node& node, const std::string& name) {
      if (const auto* text = node.as_string()) {
        out = text->get();
      } else {
        wrong_type(node, name, "a string");
      }
    };
  }

  void read_section(const toml::table& table, std::string_view section,
                    const std::vector<Setting>& all) {
    Handlers handlers;
    for (const Setting& setting : all)
      if (setting.section == section)
        handlers[setting.key] = [this, &setting](const toml::node& node, const std::string&) {
          read_setting(node, setting);
        };
    dispatch(table, fmt::format("{}.", section), handlers);
  }

  // A table of names and values: [fleet.kafka_settings].
  void read_named_values(const toml::node& node, const Setting& setting, NamedValues& out) {
    const auto* table = as_table(node, setting.name());
    if (table == nullptr) return;
    for (const auto& [key, value] : *table) {
      const std::string name = fmt::format("{}.\"{}\"", setting.name(), key.str());
      auto text = scalar_text(value);
      if (!text) {
        // A dot in a key without quotes begins a table.
        wrong_type(value, name,
                   "a string; write names with dots in quotes, as in \"security.protocol\" = "
                   "\"SASL_SSL\"");
      } else {
        out.values[std::string(key.str())] = *std::move(text);
      }
    }
    settings_.origins[setting.name()] = fmt::format("{}{}", place(node.source()), setting.name());
  }

  // A value must have the type with which it is printed; sizes and times may also be numbers.
  void read_setting(const toml::node& node, const Setting& setting) {
    if (NamedValues* const* named = std::get_if<NamedValues*>(&setting.place))
      return read_named_values(node, setting, **named);
    const bool is_amount = std::holds_alternative<ByteCount*>(setting.place) ||
                           std::holds_alternative<std::chrono::milliseconds*>(setting.place);
    const bool is_number = std::holds_alternative<std::uint32_t*>(setting.place);
    const bool fits = setting.is_switch() ? node.is_boolean()
                      : is_number         ? node.is_integer()
                                          : node.is_string() || (is_amount && node.is_integer());
    if (!fits)
      return wrong_type(node, setting.name(),
                        setting.is_switch() ? "true or false"
                        : is_number         ? "a number"
                                            : "a string");
    if (const Status set = setting.set(*scalar_text(node)); !set)
      return problem(node.source(), setting.name(), set.error().message);
    settings_.origins[setting.name()] = fmt::format("{}{}", place(node.source()), setting.name());
  }

  void read_account(const toml::table& table) {
    AccountSettings account;
    std::vector<const toml::table*> keys;
    dispatch(table, "account.",
             {{"id", string_into(account.id)},
              {"key", [&](const toml::node& node, const std::string& name) {
                 each_table(node, name, [&](const toml::table& key) { keys.push_back(&key); });
               }}});
    if (!is_account_id(account.id))
      problem(where(table, "id"), "account.id", "give the account's 12 digits, as a string");
    if (!accounts_.insert(account.id).second)
      problem(where(table, "id"), "account.id", fmt::format("{} is listed twice", account.id));
    for (const toml::table* key : keys) read_key(*key, account);
    if (keys.empty())
      problem(
          table.source(), "account.key",
          fmt::format("account {} has no [[account.key]], so nobody could call as it", account.id));
    settings_.accounts.push_back(std::move(account));
  }

  void read_key(const toml::table& table, AccountSettings& account) {
    KeySettings key;
    std::string token;
    dispatch(table, "account.key.",
             {{"id", string_into(key.id)},
              {"secret", string_into(key.secret)},
              {"secret_file", string_into(key.secret_file)},
              {"user", string_into(key.user)},
              {"session_token", string_into(token)},
              {"expires", [&](const toml::node& node, const std::string& name) {
                 read_expiry(node, name, key);
               }}});
    if (!token.empty()) key.session_token = token;
    check_key(table, key);
    account.keys.push_back(std::move(key));
  }

  void read_expiry(const toml::node& node, const std::string& name, KeySettings& key) {
    const auto* date = node.as_date_time();
    const auto at = date == nullptr ? std::nullopt : to_instant(date->get());
    if (!at)
      return problem(node.source(), name,
                     "give date, time and zone without quotes, such as 2030-01-31T12:00:00Z");
    key.expires = *at;
  }

  // The text never repeats a secret.
  void check_key(const toml::table& table, KeySettings& key) {
    const auto wrong = [&](std::string_view name, std::string_view what) {
      problem(where(table, name), fmt::format("account.key.{}", name), what);
    };
    const auto is_id_letter = [](char c) { return c > ' ' && c < 0x7F && c != '/' && c != ','; };
    if (key.id.empty() || key.id.size() > kKeyIdSizeMax ||
        !std::ranges::all_of(key.id, is_id_letter)) {
      return wrong("id", "give the access key id: visible characters without / and ,");
    }
    if (!key_ids_.insert(key.id).second) wrong("id", fmt::format("{} is listed twice", key.id));
    const auto is_user_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("+=,.@_-/").find(c) != std::string_view::npos;
    };
    if (key.user.size() > 128 || !std::ranges::all_of(key.user, is_user_letter))
      wrong("user", "a user's name has letters, digits and + = , . @ _ - only");
    if (key.session_token == kHidden) wrong("session_token", kHiddenProblem);
    if (key.secret.empty() == key.secret_file.empty())
      return wrong("secret", fmt::format("key {} needs either secret or secret_file", key.id));
    if (!key.secret_file.empty()) read_secret(table, key);
    if (key.secret == kHidden)
      wrong(key.secret_file.empty() ? "secret" : "secret_file", kHiddenProblem);
  }

  void read_secret(const toml::table& table, KeySettings& key) {
    const auto wrong = [&](std::string_view what) {
      problem(where(table, "secret_file"), "account.key.secret_file", what);
    };
    auto text = read_small_file(key.secret_file, kSecretSizeMax);
    if (!text) return wrong(text.error().message);
    while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
    if (text->empty()) return wrong(fmt::format("{} is empty", key.secret_file));
    key.secret = std::move(*text);
  }

  void read_queue(const toml::table& table) {
    QueueSettings queue;
    queue.origin = line_of(table.source());
    dispatch(
        table, "queue.",
        {{"name", string_into(queue.name)},
         {"account", string_into(queue.account)},
         {"region", string_into(queue.region)},
         {"attributes",
          [&](const toml::node& node, const std::string& name) {
            read_map(node, name, queue.attributes, queue.places);
          }},
         {"tags", [&](const toml::node& node,
                      const std::string& name) { read_map(node, name, queue.tags, queue.places); }},
         {"redrive", [&](const toml::node& node, const std::string& name) {
            read_redrive(node, name, queue);
          }}});
    for (const char* key : {"name", "account", "region"})
      queue.places[key] = line_of(where(table, key));
    if (queue.name.empty()) problem(where(table, "name"), "queue.name", "give the queue a name");
    if (!queue.account.empty() && !is_account_id(queue.account))
      problem(where(table, "account"), "queue.account",
              "give the account's 12 digits, as a string");
    if (!queue.region.empty() && !is_region_name(queue.region))
      problem(where(table, "region"), "queue.region",
              "give the name of a region, such as us-east-1");
    if (queue.redrive && queue.attributes.contains("RedrivePolicy"))
      problem(where(table, "redrive"), "queue.redrive",
              "give either this or the attribute RedrivePolicy");
    // The queue's name already says that it is FIFO, so the file need not.
    if (is_fifo_name(queue.name)) queue.attributes.try_emplace("FifoQueue", "true");
    settings_.queues.push_back(std::move(queue));
  }

  // Records the lines under the names that the parts have within the queue.
  using Places = std::map<std::string, std::string, std::less<>>;
  void read_map(const toml::node& node, const std::string& name, StringMap& out, Places& places) {
    const auto* table = as_table(node, name);
    if (table == nullptr) return;
    const std::string part = name.substr(name.find('.') + 1);
    places[part] = line_of(table->source());
    for (const auto& [key, value] : *table) {
      const std::string entry = fmt::format("{}.{}", name, key.str());
      places[fmt::format("{}.{}", part, key.str())] = line_of(value.source());
      if (auto text = scalar_text(value)) {
        out[std::string(key.str())] = std::move(*text);
      } else {
        wrong_type(value, entry, "a string, a number, or true or false");
      }
    }
  }

  void read_redrive(const toml::node& node, const std::string& name, QueueSettings& queue) {
    const auto* table = as_table(node, name);
    if (table == nullptr) return;
    RedriveSettings redrive;
    dispatch(*table, name + ".",
             {{"dead_letter", string_into(redrive.dead_letter)},
              {"max_receive_count", [&](const toml::node& n, const std::string& full) {
                 if (const auto* number = n.as_integer()) {
                   redrive.max_receive_count = number->get();
                 } else {
                   wrong_type(n, full, "a number");
                 }
               }}});
    if (redrive.dead_letter.empty())
      problem(where(*table, "dead_letter"), name + ".dead_letter", "name the dead-letter queue");
    queue.places["redrive"] = line_of(table->source());
    for (const char* key : {"dead_letter", "max_receive_count"})
      queue.places[fmt::format("redrive.{}", key)] = line_of(where(*table, key));
    queue.redrive = std::move(redrive);
  }

  const std::string& file_;
  Settings& settings_;
  std::vector<std::string> problems_;
  std::set<std::string> accounts_;
  std::set<std::string> key_ids_;
};

}  // namespace

Result<std::string> read_small_file(const std::string& path, std::size_t size_max) {
  const auto failed = [&] {
    return fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  };
  const os::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return failed();
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() <= size_max) {
    // It may be a pipe: "--config <(…)" is one. A server that reads its settings again must not wait
    // for one into which nobody writes.
    pollfd ready{.fd = file.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPipeMillisMax) == 0)
      return fail(fmt::format("cannot read {}: nothing came in {} s", path, kPipeMillisMax / 1000));
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return failed();
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return fail(fmt::format("{} is larger than {} bytes", path, size_max));
}

std::vector<std::string> read_settings_text(std::string_view text, const std::string& file,
                                            Settings& settings) {
  const toml::parse_result parsed = toml::parse(text, std::string_view(file));
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return {fmt::format("{}:{}: this is not TOML: {}", file, error.source().begin.line,
                        error.description())};
  }
  Reader reader(file, settings);
  reader.read(parsed.table());
  settings.file = file;
  return reader.take_problems();
}

std::vector<std::string> read_settings_file(const std::string& file, Settings& settings) {
  const auto text = read_small_file(file, kFileSizeMax);
  if (!text) return {text.error().message};
  return read_settings_text(*text, file, settings);
}

}  // namespace stanchion::settings

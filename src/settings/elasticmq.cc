#include "settings/elasticmq.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/ids.h"
#include "settings/hocon.h"
#include "settings/settings.h"
#include "settings/toml_text.h"

namespace stanchion::settings {
namespace {

// "10 seconds" in seconds, exact or not; a bare number is milliseconds, as in HOCON.
std::optional<double> parse_seconds(std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  static constexpr std::array kUnits{
      Unit{"", 1e-3},       Unit{"ms", 1e-3},          Unit{"milli", 1e-3},
      Unit{"millis", 1e-3}, Unit{"millisecond", 1e-3}, Unit{"milliseconds", 1e-3},
      Unit{"s", 1},         Unit{"second", 1},         Unit{"seconds", 1},
      Unit{"m", 60},        Unit{"minute", 60},        Unit{"minutes", 60},
      Unit{"h", 3600},      Unit{"hour", 3600},        Unit{"hours", 3600},
      Unit{"d", 86400},     Unit{"day", 86400},        Unit{"days", 86400}};
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto number = parse_decimal({text.begin(), end});
  std::string_view unit(end, text.end());
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::ranges::find(kUnits, unit, &Unit::name);
  if (!number || *number > 1'000'000'000 || found == kUnits.end()) return std::nullopt;
  return static_cast<double>(*number) * found->seconds;
}

std::string describe(const HoconValue& value) {
  if (const std::string* text = value.text()) return *text;
  return value.object() != nullptr ? "{…}" : "[…]";
}

class Importer {
 public:
  explicit Importer(const Hocon& hocon) : hocon_(hocon) {}

  std::string run() {
    for (const std::string& text : hocon_.notes) comment(text);
    for (const auto& [key, value] : hocon_.root.members) read_top(key, value);
    std::string out = "# Made from a configuration of ElasticMQ.\n";
    for (const std::string& line : comments_) out += "# " + line + "\n";
    if (!server_.empty()) out += "\n[server]\n" + server_;
    return out + queues_;
  }

 private:
  // A comment must stay one line, whatever the value contains.
  static std::string one_line(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return text;
  }
  void comment(std::string text) { comments_.push_back(one_line(std::move(text))); }
  void no_equivalent(std::string_view key, std::string_view why = "") {
    comment(fmt::format("{} has no equivalent{}{}", key, why.empty() ? "" : ": ", why));
  }
  void set(std::string_view key, std::string_view value) {
    server_ += fmt::format("{} = {}\n", key, toml_string(value));
  }

  void read_top(const std::string& key, const HoconValue& value) {
    const HoconObject* object = value.object();
    if (key == "queues" && object != nullptr) {
      read_queues(*object);
    } else if (key == "rest-sqs" && object != nullptr) {
      read_rest_sqs(*object);
    } else if (key == "node-address" && object != nullptr) {
      read_node_address(*object);
    } else if (key == "aws" && object != nullptr) {
      read_aws(*object);
    } else if (key == "generate-node-address") {
      comment("generate-node-address is not needed: queue URLs begin with what the client called");
    } else if (key == "queues-storage" || key == "messages-storage") {
      no_equivalent(key, "queues and messages are kept in server.data unless server.in_memory");
    } else if (key == "rest-stats") {
      no_equivalent(key, "there is no page of statistics");
    } else {
      no_equivalent(key);
    }
  }

  static std::string text_of(const HoconObject& object, std::string_view key,
                             std::string_view otherwise) {
    const HoconValue* value = object.find(key);
    return std::string(value != nullptr && value->text() ? *value->text() : otherwise);
  }

  void read_rest_sqs(const HoconObject& object) {
    static constexpr std::array<std::string_view, 4> kKnown{"bind-hostname", "bind-port", "enabled",
                                                            "sqs-limits"};
    for (const auto& [key, value] : object.members)
      if (std::ranges::find(kKnown, key) == kKnown.end()) no_equivalent("rest-sqs." + key);
    if (text_of(object, "enabled", "true") == "false")
      comment("rest-sqs.enabled = false has no equivalent: SQS is all that is served");
    if (object.find("sqs-limits") != nullptr)
      comment("rest-sqs.sqs-limits is not needed: the limits of SQS always hold");
    if (object.find("bind-hostname") == nullptr && object.find("bind-port") == nullptr) return;
    const std::string host = text_of(object, "bind-hostname", "0.0.0.0");
    const std::string port = text_of(object, "bind-port", "9324");
    const bool v6 = host.find(':') != std::string::npos;
    const std::string listen = fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
    if (!parse_listen(listen))
      return comment(fmt::format("rest-sqs: {} is not an address", listen));
    set("listen", listen);
    if (!is_loopback(host))
      server_ +=
          "# This address can be reached from other machines. Configure [[account]]s, or let\n"
          "# everybody in, as ElasticMQ does, by removing the # here:\n"
          "# insecure = true\n";
  }

  void read_node_address(const HoconObject& object) {
    for (const auto& [key, value] : object.members)
      if (key != "protocol" && key != "host" && key != "port" && key != "context-path")
        no_equivalent("node-address." + key);
    const std::string path = text_of(object, "context-path", "");
    if (!path.empty())
      no_equivalent("node-address.context-path", "let a proxy in front remove the path");
    const std::string host = text_of(object, "host", "localhost");
    // Both settings mean, in effect, the name that the client used.
    if (host == "*" || host == "localhost") return;
    set("public_url", fmt::format("{}://{}:{}", text_of(object, "protocol", "http"), host,
                                  text_of(object, "port", "9324")));
  }

  void read_aws(const HoconObject& object) {
    for (const auto& [key, value] : object.members) {
      const std::string text = describe(value);
      if (key == "region" && is_region_name(text)) {
        set("region", text);
      } else if (key == "accountId" && is_account_id(text)) {
        set("account", text);
      } else {
        comment(fmt::format("aws.{} = {} cannot be converted", key, text));
      }
    }
  }

  void read_queues(const HoconObject& object) {
    for (const auto& [name, value] : object.members)
      if (const HoconObject* queue = value.object())
        fifo_names_.emplace_back(name, text_of(*queue, "fifo", "false") == "true");
    for (const auto& [name, value] : object.members) {
      if (const HoconObject* queue = value.object()) {
        read_queue(name, *queue);
      } else {
        no_equivalent("queues." + name);
      }
    }
  }

  // Here a FIFO queue's name must have the suffix; ElasticMQ does not require it.
  std::string renamed(const std::string& name) const {
    const bool fifo = std::ranges::find(fifo_names_, std::pair(name, true)) != fifo_names_.end();
    return fifo && !is_fifo_name(name) ? name + std::string(kFifoSuffix) : name;
  }

  void read_queue(const std::string& name, const HoconObject& object) {
    QueueSettings queue;
    queue.name = renamed(name);
    queue_comments_.clear();
    if (queue.name != name)
      queue_comments_.push_back(
          fmt::format("a FIFO queue's name ends with .fifo; it was {}", name));
    for (const auto& [key, value] : object.members) read_queue_member(queue, key, value);
    queues_ += "\n";
    for (std::string& line : queue_comments_)
      queues_ += fmt::format("# {}: {}\n", one_line(name), one_line(std::move(line)));
    queues_ += to_toml(queue);
  }

  void read_queue_member(QueueSettings& queue, const std::string& key, const HoconValue& value) {
    if (key == "defaultVisibilityTimeout") {
      read_time(queue, "VisibilityTimeout", key, value);
    } else if (key == "delay") {
      read_time(queue, "DelaySeconds", key, value);
    } else if (key == "receiveMessageWait") {
      read_time(queue, "ReceiveMessageWaitTimeSeconds", key, value);
    } else if (key == "contentBasedDeduplication") {
      if (describe(value) == "true") queue.attributes["ContentBasedDeduplication"] = "true";
    } else if (key == "deadLettersQueue" && value.object() != nullptr) {
      read_dead_letters(queue, *value.object());
    } else if (key == "tags" && value.object() != nullptr) {
      for (const auto& [tag, text] : value.object()->members) queue.tags[tag] = describe(text);
    } else if (key != "fifo") {
      queue_comments_.push_back(fmt::format("{} = {} has no equivalent", key, describe(value)));
    }
  }

  void read_time(QueueSettings& queue, const char* attribute, const std::string& key,
                 const HoconValue& value) {
    const auto seconds = parse_seconds(describe(value));
    if (!seconds) {
      queue_comments_.push_back(fmt::format("{} = {} is not a time", key, describe(value)));
      return;
    }
    const double whole = std::ceil(*seconds);
    if (whole != *seconds)
      queue_comments_.push_back(
          fmt::format("{} = {} was rounded up to whole seconds", key, describe(value)));
    queue.attributes[attribute] = fmt::to_string(static_cast<std::int64_t>(whole));
  }

  void read_dead_letters(QueueSettings& queue, const HoconObject& object) {
    const std::string target = text_of(object, "name", "");
    const auto count = parse_decimal(text_of(object, "maxReceiveCount", "3"));
    for (const auto& [key, value] : object.members)
      if (key != "name" && key != "maxReceiveCount")
        queue_comments_.push_back(fmt::format("deadLettersQueue.{} has no equivalent", key));
    if (target.empty() || !count || *count > 1'000'000) {
      queue_comments_.push_back("deadLettersQueue has no name or no number of receives");
      return;
    }
    const auto is_target = [&](const auto& entry) { return entry.first == target; };
    if (std::ranges::none_of(fifo_names_, is_target))
      queue_comments_.push_back(
          fmt::format("the dead-letter queue {} is not in this file and must exist", target));
    queue.redrive = RedriveSettings{renamed(target), static_cast<std::int64_t>(*count)};
  }

  const Hocon& hocon_;
  std::vector<std::string> comments_;
  std::string server_;
  std::string queues_;
  std::vector<std::string> queue_comments_;
  std::vector<std::pair<std::string, bool>> fifo_names_;  // Each queue, and whether it is FIFO.
};

}  // namespace

Result<std::string> import_elasticmq(std::string_view text) {
  auto hocon = parse_hocon(text);
  if (!hocon) return std::unexpected(hocon.error());
  return Importer(*hocon).run();
}

}  // namespace stanchion::settings

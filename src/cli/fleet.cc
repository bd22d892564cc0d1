#include "cli/fleet.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/fleet_target.h"
#include "cli/program.h"
#include "fleet/control_codec.h"
#include "fleet_admin/fleet_admin.h"
#include "fleet_admin/fleet_report.h"
#include "fleet_admin/import.h"
#include "fleet_admin/log_inspection.h"
#include "fleet_admin/rebuild.h"
#include "fleet_admin/topics.h"
#include "model/limits.h"
#include "os/clock.h"
#include "os/entropy.h"

namespace stanchion::cli {
namespace {

using namespace std::chrono_literals;

// How often is looked whether an operator's request has been carried out.
constexpr auto kLookInterval = 200ms;
// A request that is not carried out for so long is reported; it stays, and may be carried out
// later.
constexpr auto kNoProgressMax = 60s;

struct Wanted {
  std::string action;
  std::vector<std::string> arguments;
  FleetFlags fleet;
  std::uint32_t shards = 24;
  bool one_copy = false;
  bool json = false;
  bool undo = false;
  bool no_wait = false;
  std::vector<std::string> data;
  bool without_log = false;
  bool accept_loss = false;
};

int found(fleet_admin::FleetAdmin& admin, const Wanted& wanted) {
  os::SystemEntropy entropy;
  os::SystemClock clock;
  const Status founded = admin.found(wanted.shards, wanted.one_copy, entropy, clock.now(),
                                     [](std::string_view line) { announce(line); });
  return founded ? kExitOk : give_up(founded.error().message, kExitFailed);
}

int import(const FleetTarget& target, const Wanted& wanted) {
  os::SystemEntropy entropy;
  os::SystemClock clock;
  const auto imported =
      fleet_admin::import_directory({.fleet = target.name,
                                     .kafka = target.kafka,
                                     .one_copy = wanted.one_copy,
                                     .data = wanted.arguments[0]},
                                    entropy, clock, [](std::string_view line) { announce(line); });
  if (!imported) return give_up(imported.error().message, kExitFailed);
  announce(
      fmt::format("{} is now the data directory of the first node: start it before the others, "
                  "with --fleet {} --data {}",
                  wanted.arguments[0], target.name, wanted.arguments[0]));
  return kExitOk;
}

int rebuild(const FleetTarget& target, const Wanted& wanted) {
  os::SystemEntropy entropy;
  os::SystemClock clock;
  const Status rebuilt =
      fleet_admin::rebuild_fleet({.fleet = target.name,
                                  .kafka = target.kafka,
                                  .one_copy = wanted.one_copy,
                                  .data = wanted.data,
                                  .without_log = wanted.without_log,
                                  .accept_loss = wanted.accept_loss},
                                 entropy, clock, [](std::string_view line) { announce(line); });
  if (!rebuilt) return give_up(rebuilt.error().message, kExitFailed);
  announce(
      fmt::format("start the nodes with --fleet {}, each with its own directory; those that have "
                  "less copy from the others",
                  target.name));
  return kExitOk;
}

int show_status(fleet_admin::FleetAdmin& admin, bool as_json) {
  if (const Status heard = admin.listen(); !heard)
    return give_up(heard.error().message, kExitFailed);
  std::vector<std::optional<std::uint64_t>> entries;
  for (const auto& size : admin.log_sizes()) {
    entries.emplace_back();
    if (size) entries.back() = size->end.value() - size->first.value();
  }
  std::map<fleet::NodeName, fleet_admin::Heard> heard;
  os::SystemClock clock;
  Instant now = clock.now();
  for (const auto& [name, at] : admin.last_beats()) {
    heard[name] = {at, admin.is_alive(name)};
    // The brokers' time, where somebody tells it.
    if (admin.is_alive(name)) now = at;
  }
  const fleet_admin::FleetReport report = fleet_admin::make_report(admin.state(), heard, entries);
  fmt::print("{}", as_json ? fleet_admin::to_json(report) : fleet_admin::to_text(report, now));
  return report.has_shard_without_owner() ? kExitFailed : kExitOk;
}

std::size_t owned_by(const fleet_admin::FleetAdmin& admin, const fleet::NodeName& node) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < admin.metadata().shards; ++i) {
    const auto& assignment = admin.state().shard(ShardIndex(i)).assignment;
    count += assignment && assignment->owner == node;
  }
  return count;
}

// Whether the node says that it serves the shard.
bool serves(const fleet_admin::FleetAdmin& admin, const fleet::NodeName& name, ShardIndex shard) {
  const fleet::ControlState::Node* node = admin.state().find(name);
  if (node == nullptr) return false;
  const auto reached = node->beat.reached.find(shard);
  return reached != node->beat.reached.end() && reached->second.service != 0;
}

std::size_t served_by(const fleet_admin::FleetAdmin& admin, const fleet::NodeName& node) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < admin.metadata().shards; ++i)
    count += serves(admin, node, ShardIndex(i));
  return count;
}

// Watches the fleet until `left` is 0, and tells how far it is.
int wait_until_none_left(fleet_admin::FleetAdmin& admin, const std::function<std::size_t()>& left,
                         const std::function<void(std::size_t)>& tell) {
  auto changed_at = std::chrono::steady_clock::now();
  for (std::size_t last = SIZE_MAX;;) {
    if (const Status watched = admin.watch(kLookInterval, [] { return false; }); !watched)
      return give_up(watched.error().message, kExitFailed);
    const std::size_t now = left();
    if (now != last) {
      tell(now);
      last = now;
      changed_at = std::chrono::steady_clock::now();
    }
    if (now == 0) return kExitOk;
    if (std::chrono::steady_clock::now() - changed_at > kNoProgressMax)
      return give_up(
          "nothing has changed for a minute; the request stays in force until another node can "
          "take over. stanchion fleet status shows what is missing",
          kExitFailed);
  }
}

// The node as the fleet knows it; else what is wrong.
Status check_node(const fleet_admin::FleetAdmin& admin, const fleet::NodeName& node) {
  if (admin.state().find(node) != nullptr) return {};
  std::vector<std::string> known;
  for (const auto& [name, its] : admin.state().nodes()) known.push_back(name);
  return fail(fmt::format("there is no node {}; known are {}", shown(node),
                          known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

int drain(fleet_admin::FleetAdmin& admin, const fleet::NodeName& node, bool undo, bool no_wait) {
  if (const Status known = check_node(admin, node); !known)
    return give_up(known.error().message, kExitSettings);
  if (const Status heard = admin.listen(); !heard)
    return give_up(heard.error().message, kExitFailed);
  if (const Status written = admin.append(fleet::Drain{node, !undo}); !written)
    return give_up(written.error().message, kExitFailed);
  if (undo) {
    announce(fmt::format("{} can own shards again", node));
    return kExitOk;
  }
  if (!admin.is_alive(node)) {
    announce(fmt::format("{} will own nothing; it is down at the moment", node));
    return kExitOk;
  }
  if (no_wait) {
    announce(fmt::format("{} will own nothing", node));
    return kExitOk;
  }
  return wait_until_none_left(
      admin, [&] { return std::max(owned_by(admin, node), served_by(admin, node)); },
      [&](std::size_t left) {
        announce(left == 0 ? fmt::format("{} no longer owns anything", node)
                           : fmt::format("{} owns {} shard{}", node, left, left == 1 ? "" : "s"));
      });
}

// For a person who wonders why a shard was moved.
std::string caller() {
  std::array<char, 64> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const char* user = std::getenv("USER");
  std::string text = fmt::format("{} at {}", user == nullptr ? "somebody" : user, host.data());
  text.resize(std::min(text.size(), fleet::kControlTextSizeMax));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

int move_shard(fleet_admin::FleetAdmin& admin, const std::string& shard_text,
               const fleet::NodeName& node, bool no_wait) {
  const auto number = parse_decimal(shard_text);
  if (!number || *number >= admin.metadata().shards)
    return give_up(fmt::format("\"{}\" is not a shard; shards are 0 to {}", shown(shard_text),
                               admin.metadata().shards - 1),
                   kExitSettings);
  if (const Status known = check_node(admin, node); !known)
    return give_up(known.error().message, kExitSettings);
  if (const Status heard = admin.listen(); !heard)
    return give_up(heard.error().message, kExitFailed);
  if (!admin.is_alive(node))
    return give_up(fmt::format("{} is down: it cannot take a shard", node), kExitFailed);
  if (admin.state().is_drained(node))
    return give_up(fmt::format("{} is drained: stanchion fleet drain {} --undo", node, node),
                   kExitFailed);
  const ShardIndex shard(static_cast<std::uint32_t>(*number));
  os::SystemEntropy entropy;
  const fleet::Move move{.id = entropy.u64() | 1, .shard = shard, .to = node, .by = caller()};
  if (const Status written = admin.append(move); !written)
    return give_up(written.error().message, kExitFailed);
  if (no_wait) {
    announce(fmt::format("shard {} will move to {}", shard.value(), node));
    return kExitOk;
  }
  return wait_until_none_left(
      admin,
      [&]() -> std::size_t {
        const auto& assignment = admin.state().shard(shard).assignment;
        if (!assignment || assignment->applied_move != move.id) return 2;
        return serves(admin, node, shard) ? 0 : 1;
      },
      [&](std::size_t left) {
        announce(left == 0   ? fmt::format("{} serves shard {}", node, shard.value())
                 : left == 1 ? fmt::format("shard {} is being handed to {}", shard.value(), node)
                             : fmt::format("{} must follow shard {} first", node, shard.value()));
      });
}

int forget(fleet_admin::FleetAdmin& admin, const fleet::NodeName& node) {
  if (const Status known = check_node(admin, node); !known)
    return give_up(known.error().message, kExitSettings);
  if (const Status heard = admin.listen(); !heard)
    return give_up(heard.error().message, kExitFailed);
  if (admin.is_alive(node))
    return give_up(fmt::format("{} is alive and would be back at once: stop it first", node),
                   kExitFailed);
  if (const Status written = admin.append(fleet::Forget{node}); !written)
    return give_up(written.error().message, kExitFailed);
  announce(fmt::format("{} is forgotten; others get its replicas", node));
  return kExitOk;
}

int skip_entry(fleet_admin::FleetAdmin& admin, const std::string& fleet,
               const std::string& shard_text, const std::string& offset_text) {
  const auto number = parse_decimal(shard_text);
  if (!number || *number >= admin.metadata().shards)
    return give_up(fmt::format("\"{}\" is not a shard; shards are 0 to {}", shown(shard_text),
                               admin.metadata().shards - 1),
                   kExitSettings);
  const auto offset = parse_decimal(offset_text);
  if (!offset)
    return give_up(fmt::format("\"{}\" is not an offset", shown(offset_text)), kExitSettings);
  const ShardIndex shard(static_cast<std::uint32_t>(*number));
  const kafka::ShardLog log{.partition = fleet_admin::log_partition(fleet, shard),
                            .fleet = admin.metadata().id,
                            .shard = shard};
  const auto stop =
      fleet_admin::nodes_stop_at(admin.connection(), log, journal::LogOffset(*offset));
  if (!stop) return give_up(stop.error().message, kExitFailed);
  if (!*stop)
    return give_up(
        fmt::format("nodes can read the entry at offset {} of shard {}; stanchion inspect --shard "
                    "{} shows which are damaged",
                    *offset, shard.value(), shard.value()),
        kExitFailed);
  const fleet::Skip skip{.shard = shard, .offset = *offset, .by = caller()};
  if (const Status written = admin.append(skip); !written)
    return give_up(written.error().message, kExitFailed);
  announce(
      fmt::format("the entry at offset {} of shard {} has no effect from now on; nodes that had "
                  "given up the shard try again at once",
                  *offset, shard.value()));
  return kExitOk;
}

struct Action {
  std::string_view name;
  std::size_t arguments;
  std::string_view usage;
};

constexpr std::array kActions{
    Action{"init", 0, "init"},
    Action{"status", 0, "status"},
    Action{"drain", 1, "drain NODE"},
    Action{"move", 2, "move SHARD NODE"},
    Action{"forget", 1, "forget NODE"},
    Action{"import", 1, "import DIR"},
    Action{"rebuild", 0, "rebuild --data DIR[,DIR...]"},
    Action{"skip", 2, "skip SHARD OFFSET"},
};

// What is wrong with the command line; empty: nothing.
std::string find_mistake(const Wanted& wanted) {
  const auto action = std::ranges::find(kActions, wanted.action, &Action::name);
  if (action == kActions.end())
    return fmt::format(
        "there is no \"stanchion fleet {}\"; known are init, status, drain, move, forget, skip, "
        "import and rebuild",
        shown(wanted.action));
  if (wanted.arguments.size() != action->arguments)
    return fmt::format("usage: stanchion fleet {}", action->usage);
  if (wanted.shards < 1 || wanted.shards > limits::kShardsMax)
    return fmt::format("--shards is from 1 to {}", limits::kShardsMax);
  const bool rebuilds = wanted.action == "rebuild";
  if (wanted.one_copy && wanted.action != "init" && wanted.action != "import" && !rebuilds)
    return "--one-copy is for fleet init, fleet import and fleet rebuild";
  if (rebuilds == wanted.data.empty())
    return rebuilds ? "usage: stanchion fleet rebuild --data DIR[,DIR...]"
                    : "--data is for fleet rebuild";
  if ((wanted.without_log || wanted.accept_loss) && !rebuilds)
    return "--without-log and --accept-loss are for fleet rebuild";
  if (wanted.json && wanted.action != "status") return "--json is for fleet status";
  if (wanted.undo && wanted.action != "drain") return "--undo is for fleet drain";
  if (wanted.no_wait && wanted.action != "drain" && wanted.action != "move")
    return "--no-wait is for fleet drain and fleet move";
  return "";
}

int run(const Wanted& wanted) {
  if (const std::string mistake = find_mistake(wanted); !mistake.empty())
    return give_up(mistake, kExitSettings);
  auto target = find_fleet(wanted.fleet);
  if (!target) return give_up(target.error().message, kExitSettings);
  if (wanted.action == "import") return import(*target, wanted);
  if (wanted.action == "rebuild") return rebuild(*target, wanted);
  const auto admin = fleet_admin::FleetAdmin::open(target->kafka, target->name);
  if (!admin) return give_up(admin.error().message, kExitSettings);
  if (wanted.action == "init") return found(**admin, wanted);
  if (const Status read = (*admin)->read(); !read)
    return give_up(read.error().message, kExitFailed);
  if (wanted.action == "status") return show_status(**admin, wanted.json);
  if (wanted.action == "drain")
    return drain(**admin, wanted.arguments[0], wanted.undo, wanted.no_wait);
  if (wanted.action == "forget") return forget(**admin, wanted.arguments[0]);
  if (wanted.action == "skip")
    return skip_entry(**admin, target->name, wanted.arguments[0], wanted.arguments[1]);
  return move_shard(**admin, wanted.arguments[0], wanted.arguments[1], wanted.no_wait);
}

constexpr const char* kNotes =
    "  init              creates the topics NAME.log and NAME.control and the fleet, unless\n"
    "                    they exist\n"
    "  status            shows nodes and shards, as recorded in Kafka: no node has to run.\n"
    "                    Exits with 1 if a shard has no owner\n"
    "  drain NODE        hands the node's shards to others, and its replicas if others can\n"
    "                    take them; waits for the shards. --undo cancels it\n"
    "  move SHARD NODE   makes the node the owner of the shard, once it has followed it\n"
    "  forget NODE       gives the replicas of a node that will not come back to others\n"
    "  skip SHARD OFFSET voids an entry of the shard's log that nodes cannot read, for good;\n"
    "                    its contents are lost\n"
    "  import DIR        creates the fleet from the data directory of a single, stopped server;\n"
    "                    it becomes the directory of the first node\n"
    "  rebuild           creates the fleet again from the directories of its stopped nodes\n"
    "                    (--data), or from backups of them, if Kafka's topics are lost or\n"
    "                    damaged. With a new --name it also uses what the old logs "
    "still have\n"
    "Name, brokers and Kafka settings can also come from [fleet] in stanchion.toml or from the\n"
    "environment, as for stanchion serve. Example:\n"
    "  stanchion fleet init --kafka kafka-1:9092,kafka-2:9092 --name orders --shards 24";

}  // namespace

void add_fleet(Program& program) {
  const auto wanted = std::make_shared<Wanted>();
  Command command = program.add("fleet", "Create, inspect and change a fleet of nodes on Kafka",
                                [wanted] { return run(*wanted); });
  command
      .option("ACTION", wanted->action,
              "init, status, drain, move, forget, skip, import or rebuild")
      .required()
      .value("init|status|drain|move|forget|skip|import|rebuild");
  command.option("ARGUMENTS", wanted->arguments, "NODE, SHARD NODE or SHARD OFFSET: see below")
      .at_most(2);
  add_fleet_flags(command, wanted->fleet);
  command.option("--shards", wanted->shards, "For init: the number of shards, fixed for good")
      .with_default()
      .value("NUMBER");
  command.flag("--one-copy", wanted->one_copy,
               "For init, import and rebuild, for trials: topics for a single broker");
  command.flag("--json", wanted->json, "For status: print JSON");
  command.flag("--undo", wanted->undo, "For drain: let the node own shards again");
  command.flag("--no-wait", wanted->no_wait, "For drain and move: do not wait for the result");
  command
      .option("--data", wanted->data,
              "For rebuild: directories of the fleet's nodes, separated by commas")
      .separated_by(',')
      .value("DIR[,DIR...]");
  command.flag("--without-log", wanted->without_log, "For rebuild: use only the directories");
  command.flag("--accept-loss", wanted->accept_loss,
               "For rebuild: start a shard empty if no directory has it");
  command.notes(kNotes);
}

}  // namespace stanchion::cli

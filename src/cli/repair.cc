#include "cli/repair.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/exit_codes.h"
#include "base/terminal.h"
#include "base/time_text.h"
#include "broker/data_directory.h"
#include "broker/repair.h"
#include "cli/program.h"
#include "os/real_directory.h"

namespace stanchion::cli {
namespace {

constexpr std::size_t kPiecesShown = 20;

void show_piece(const engine::LostMessages& piece) {
  std::string line = fmt::format("    lost: {} of the messages with sequence numbers {} to {}",
                                 piece.count, piece.first.value(), piece.last.value());
  if (!piece.group.empty()) line += fmt::format(", group {}", shown(piece.group));
  fmt::print("{}, which arrived from {} to {}\n", line, format_instant(piece.entered_first),
             format_instant(piece.entered_last));
}

void show_queue(const engine::SalvagedQueue& queue, bool tables_lost) {
  const bool may_be_more = queue.chunks_unknown || tables_lost;
  fmt::print("  queue {} ({}, {}): {} messages are readable, {}{} are lost\n", queue.ref.name,
             queue.ref.account, queue.ref.region, queue.kept, may_be_more ? "at least " : "",
             queue.lost);
  for (std::size_t i = 0; i < std::min(queue.pieces.size(), kPiecesShown); ++i)
    show_piece(queue.pieces[i]);
  if (queue.pieces.size() > kPiecesShown)
    fmt::print("    and more, {} places in all\n", queue.pieces.size());
  if (may_be_more)
    fmt::print("    the list of its messages is damaged: more messages may be lost\n");
  if (queue.states_unknown)
    fmt::print(
        "    messages that were in flight, delayed or returned may be visible again, received "
        "fewer times than before\n");
  if (queue.deduplication_lost)
    fmt::print("    deduplication ids are lost: a repeated send may count as a new message\n");
  if (queue.attempts_lost) fmt::print("    receive attempt ids are lost\n");
  if (queue.places_lost) fmt::print("    the order among its message groups is lost\n");
}

void show_shard(ShardIndex shard, const broker::ShardRepair& repair, bool only_look) {
  if (!repair.damaged()) {
    fmt::print("shard {}: sound\n", shard.value());
    return;
  }
  fmt::print("shard {}: damaged{}{}\n", shard.value(), repair.damage.empty() ? "" : ": ",
             repair.damage);
  if (repair.found.queues_lost)
    fmt::print("  queues are lost with their messages: their settings cannot be read\n");
  if (repair.found.departures_lost)
    fmt::print("  messages on their way to a dead-letter queue or by a move task are lost\n");
  bool any = repair.found.queues_lost || repair.found.departures_lost;
  for (const engine::SalvagedQueue& queue : repair.found.queues) {
    if (queue.damaged()) show_queue(queue, repair.tables_lost);
    any = any || queue.damaged();
  }
  if (!any && repair.tables_lost) {
    fmt::print(
        "  no message is known to be lost, but a whole table cannot be read, so some may be\n");
  } else if (!any) {
    fmt::print("  no message is lost\n");
  }
  if (repair.left_out > 0)
    fmt::print("  {} entries of the journal concerned lost messages\n", repair.left_out);
  if (only_look) return fmt::print("  nothing was changed\n");
  fmt::print("  repaired; the damaged store is kept as {}\n", repair.set_aside_as);
}

}  // namespace

int repair(const RepairSettings& settings) {
  auto root = os::open_existing_directory(settings.data);
  if (!root) {
    complain(root.error().message);
    return kExitFailed;
  }
  const auto data = broker::DataDirectory::look_at(**root);
  if (!data) {
    complain(fmt::format("{} is not a data directory of Stanchion: {}", settings.data,
                         data.error().message));
    return kExitFailed;
  }
  if (!data->fleet().empty()) {
    complain(fmt::format(
        "{} has a replica of the fleet {}. A replica is not repaired: remove the directory and "
        "start the node again, and it copies the others' stores.",
        settings.data, data->fleet()));
    return kExitFailed;
  }
  const auto lock = (*root)->lock();
  if (!lock) {
    complain(fmt::format("{}: stop the server first", lock.error().message));
    return kExitFailed;
  }
  bool damage_left = false;
  for (std::uint32_t i = 0; i < data->shard_count(); ++i) {
    const ShardIndex shard(i);
    const auto repaired = broker::repair_shard(*data, shard, settings.only_look);
    if (!repaired) {
      complain(fmt::format("shard {} stays as it is: {}", i, repaired.error().message));
      damage_left = true;
      continue;
    }
    show_shard(shard, *repaired, settings.only_look);
    if (!repaired->may_be_undone.empty())
      complain(fmt::format("shard {} is repaired, but a loss of power may undo that: {}", i,
                           repaired->may_be_undone));
    damage_left = damage_left || (repaired->damaged() && settings.only_look) ||
                  !repaired->may_be_undone.empty();
  }
  return damage_left ? kExitFailed : kExitOk;
}

void add_repair(Program& program) {
  const auto settings = std::make_shared<RepairSettings>();
  Command command = program.add(
      "repair", "Recover the readable part of a damaged data directory, and report what is lost",
      [settings] { return repair(*settings); });
  command.option("--data", settings->data, "The data directory").required().value("DIR");
  command.flag("--dry-run", settings->only_look,
               "Only report what is lost; exit with 1 if anything is damaged");
  command.notes(
      "Stop the server first. Needs as much disk space as the damaged shards take. Keeps the\n"
      "damaged stores beside the new ones. Exits with 1 if something could not be repaired.\n"
      "Example:\n"
      "  stanchion repair --data /var/lib/stanchion --dry-run");
}

}  // namespace stanchion::cli

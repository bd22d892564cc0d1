#include "cli/control_text.h"

#include <fmt/format.h>

#include <vector>

#include "base/time_text.h"

namespace stanchion::cli {
namespace {

// Positions are those of the last records that were applied, and in brackets saved.
std::string text_of(const fleet::Beat& beat) {
  std::vector<std::string> shards;
  for (const auto& [shard, reached] : beat.reached)
    shards.push_back(fmt::format("{}{} at {} ({})", reached.service == 0 ? "" : "serves ",
                                 shard.value(), reached.applied.value(), reached.saved.value()));
  return fmt::format("Beat {} in zone {} at {}, version {}, format {}, clock {}{}{}{}{}", beat.node,
                     beat.zone, beat.address, beat.version, beat.format, format_instant(beat.clock),
                     beat.ready ? ", ready" : "", beat.draining ? ", ending" : "",
                     shards.empty() ? "" : "; shards: ", fmt::join(shards, ", "));
}

std::string text_of(const fleet::CoordinatorClaim& claim) {
  return fmt::format("CoordinatorClaim term {} by {}", claim.term.value(), claim.node);
}

std::string text_of(const fleet::Assignment& assignment) {
  return fmt::format("Assignment {} of term {}: shard {} to {}, standbys {}{}",
                     assignment.number.value(), assignment.term.value(), assignment.shard.value(),
                     assignment.owner, assignment.standbys.empty() ? "none" : "",
                     fmt::join(assignment.standbys, ", ")) +
         (assignment.previous.empty() ? "" : ", before it " + assignment.previous);
}

std::string text_of(const fleet::Release& release) {
  return fmt::format("Release by {} of shard {}, for assignment {}", release.node,
                     release.shard.value(), release.number.value());
}

std::string text_of(const fleet::FleetMetadata& metadata) {
  return fmt::format("FleetMetadata of {}: {} shards, format {}, id {:016x}", metadata.name,
                     metadata.shards, metadata.format, metadata.id);
}

std::string text_of(const fleet::Drain& drain) {
  return fmt::format("Drain {}{}", drain.node, drain.on ? "" : ", taken back");
}

std::string text_of(const fleet::Move& move) {
  return fmt::format("Move shard {} to {}, asked for by {}", move.shard.value(), move.to, move.by);
}

std::string text_of(const fleet::Forget& forget) {
  return fmt::format("Forget {}", forget.node);
}

std::string text_of(const fleet::Skip& skip) {
  return fmt::format("Skip the entry at offset {} of shard {}, by {}", skip.offset,
                     skip.shard.value(), skip.by);
}

}  // namespace

std::string describe(const fleet::ControlRecord& record) {
  return std::visit([](const auto& one) { return text_of(one); }, record);
}

}  // namespace stanchion::cli

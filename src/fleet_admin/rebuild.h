// Founds the logs of a fleet anew from the directories of its nodes, after Kafka has lost them, or a
// part of them.
//
//   stores of each shard ─▶ the one that has most ─▶ where the new log begins
//   the old log, if it is there, under its old name ─▶ the records behind that ─▶ the new log
//
// The new fleet has the id of the directories. So their nodes start with them as they are: who has
// the store that was chosen follows the new log, and the others copy that store.
//
//   RB4  Nothing is overwritten. No fleet of the new name may exist, nor a log of that name in which
//        nodes have written (UL1); and of the directories only the fleet's name changes, if it has
//        another one, when the new fleet is founded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kafka/settings.h"
#include "os/clock.h"
#include "os/entropy.h"

namespace stanchion::fleet_admin {

struct RebuildOptions {
  std::string fleet;  // The name that it will have.
  kafka::KafkaSettings kafka;
  bool one_copy = false;
  std::vector<std::string> data;  // Directories of nodes that do not run, or backups of them.
  bool without_log = false;       // Whether the old log is not looked at.
  bool accept_loss = false;       // Whether a shard that no directory has begins empty.
};

// Tells by `say` what each shard had, what it is made of, and what is missing.
Status rebuild_fleet(const RebuildOptions& options, os::Entropy& entropy, os::Clock& clock,
                     const std::function<void(std::string_view)>& say);

}  // namespace stanchion::fleet_admin

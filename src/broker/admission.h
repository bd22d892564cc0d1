// What a shard lets in while the disk or memory is full, and what it tells whom it does not.
#pragma once

#include <string>

#include "journal/journal.h"
#include "model/action.h"
#include "model/reply.h"

namespace stanchion::broker {

// With this room in the journal. What drains a full disk is let in out of the reserve.
bool is_admitted(Action action, journal::Room room);

bool is_send(Action action);

// Each says that nothing was changed, and what helps.
Reply disk_is_full();
Reply disk_is_too_slow();
Reply memory_is_full();
Reply account_takes_too_much(const std::string& account);
Reply server_is_stopping();

}  // namespace stanchion::broker

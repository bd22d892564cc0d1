// What a shard admits while the disk or memory is full, and how it refuses the rest.
#pragma once

#include <string>

#include "journal/journal.h"
#include "model/action.h"
#include "model/reply.h"

namespace stanchion::broker {

// Whether the action is admitted with this room in the journal. Actions that drain a full disk are
// admitted, using the reserve.
bool is_admitted(Action action, journal::Room room);

bool is_send(Action action);

// Whether it may change how much memory the settings of a queue take.
bool changes_settings(Action action);

// Each error says that nothing was changed, and what helps.
Reply disk_is_full();
Reply disk_is_too_slow();
Reply memory_is_full();
Reply too_many_answers();
Reply too_many_ids(const std::string& queue);
Reply too_many_attempts();
Reply account_takes_too_much(const std::string& account);
Reply log_is_too_slow();
Reply log_does_not_answer();
Reply shard_has_moved();
// These do not: nobody knows.
Reply outcome_is_unknown();
Reply log_has_not_confirmed();
Reply server_is_stopping();

}  // namespace stanchion::broker

// Which of the messages that were read from the store are the members of a cold chunk.
#pragma once

#include <vector>

#include "base/result.h"
#include "engine/chunk.h"
#include "engine/message_table.h"
#include "engine/store/stored_message.h"

namespace stanchion::engine {

// A read may see the store before or after a checkpoint. Either way, detached messages and messages
// that were removed since are not members.
bool is_member(const MessageTable& messages, const Chunk& chunk, const StoredMessage& stored);

// What was read, with contents or without, can be the members of the chunk: of its group, in order,
// within what it knows of them, known to nobody.
bool are_members(const MessageTable& messages, const Chunk& chunk,
                 const std::vector<StoredMessage>& found);

// Leaves the members of the chunk in `found`; fails if the store does not hold what it should.
Status take_members(const MessageTable& messages, const Chunk& chunk,
                    std::vector<StoredMessage>& found);

}  // namespace stanchion::engine

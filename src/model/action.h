// The list of actions: the one table from which names, dispatch and tests are made.
#pragma once

#include <array>
#include <optional>
#include <string_view>

// X(AWS name)
#define STANCHION_ACTIONS(X)      \
  X(AddPermission)                \
  X(CancelMessageMoveTask)        \
  X(ChangeMessageVisibility)      \
  X(ChangeMessageVisibilityBatch) \
  X(CreateQueue)                  \
  X(DeleteMessage)                \
  X(DeleteMessageBatch)           \
  X(DeleteQueue)                  \
  X(GetQueueAttributes)           \
  X(GetQueueUrl)                  \
  X(ListDeadLetterSourceQueues)   \
  X(ListMessageMoveTasks)         \
  X(ListQueueTags)                \
  X(ListQueues)                   \
  X(PurgeQueue)                   \
  X(ReceiveMessage)               \
  X(RemovePermission)             \
  X(SendMessage)                  \
  X(SendMessageBatch)             \
  X(SetQueueAttributes)           \
  X(StartMessageMoveTask)         \
  X(TagQueue)                     \
  X(UntagQueue)

namespace stanchion {

enum class Action {
#define STANCHION_ACTION_ENUMERATOR(name) k##name,
  STANCHION_ACTIONS(STANCHION_ACTION_ENUMERATOR)
#undef STANCHION_ACTION_ENUMERATOR
};

inline constexpr std::array kActionNames{
#define STANCHION_ACTION_NAME(name) std::string_view(#name),
    STANCHION_ACTIONS(STANCHION_ACTION_NAME)
#undef STANCHION_ACTION_NAME
};

constexpr std::string_view name_of(Action action) {
  return kActionNames[static_cast<std::size_t>(action)];
}

constexpr std::optional<Action> find_action(std::string_view name) {
  for (std::size_t i = 0; i < kActionNames.size(); ++i)
    if (kActionNames[i] == name) return static_cast<Action>(i);
  return std::nullopt;
}

static_assert(kActionNames.size() == 23);

}  // namespace stanchion

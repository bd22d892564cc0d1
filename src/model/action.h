// The list of actions: the one table from which names, dispatch and tests are made, and which says
// what each action does to the data. Code that depends on the kind of an action asks this table. A
// `switch` over actions has no `default:` (tests/tidy_test.py), so that the compiler reports a new
// action that it does not handle.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace stanchion {

enum class Effect {
  kReads,   // Changes nothing: it is answered even if nothing can be written.
  kWrites,  // Adds data.
  kDrains,  // Writes little and helps to free space: it is executed while a full disk is drained.
};

enum class Touches {
  kQueue,     // Only the queue itself: it works even if the queue's messages cannot be read.
  kMessages,  // Messages of the queue, or state that leads to them.
};

// To whom the policy of a queue can grant the action.
enum class GrantedTo {
  kOwner,  // Callers of the queue owner's account.
  kAnyone,
};

}  // namespace stanchion

// X(AWS name, Effect, Touches, GrantedTo)
// clang-format off
#define STANCHION_ACTIONS(X)                                   \
  X(AddPermission,                kWrites, kQueue,    kOwner)  \
  X(CancelMessageMoveTask,        kDrains, kQueue,    kOwner)  \
  X(ChangeMessageVisibility,      kDrains, kMessages, kAnyone) \
  X(ChangeMessageVisibilityBatch, kDrains, kMessages, kAnyone) \
  X(CreateQueue,                  kWrites, kQueue,    kOwner)  \
  X(DeleteMessage,                kDrains, kMessages, kAnyone) \
  X(DeleteMessageBatch,           kDrains, kMessages, kAnyone) \
  X(DeleteQueue,                  kDrains, kQueue,    kOwner)  \
  X(GetQueueAttributes,           kReads,  kQueue,    kAnyone) \
  X(GetQueueUrl,                  kReads,  kQueue,    kAnyone) \
  X(ListDeadLetterSourceQueues,   kReads,  kQueue,    kAnyone) \
  X(ListMessageMoveTasks,         kReads,  kQueue,    kOwner)  \
  X(ListQueueTags,                kReads,  kQueue,    kOwner)  \
  X(ListQueues,                   kReads,  kQueue,    kOwner)  \
  X(PurgeQueue,                   kDrains, kQueue,    kAnyone) \
  X(ReceiveMessage,               kDrains, kMessages, kAnyone) \
  X(RemovePermission,             kWrites, kQueue,    kOwner)  \
  X(SendMessage,                  kWrites, kMessages, kAnyone) \
  X(SendMessageBatch,             kWrites, kMessages, kAnyone) \
  X(SetQueueAttributes,           kWrites, kMessages, kOwner)  \
  X(StanchionAdvice,              kReads,  kQueue,    kOwner)  \
  X(StanchionGroups,              kReads,  kMessages, kAnyone) \
  X(StanchionPeek,                kReads,  kMessages, kAnyone) \
  X(StartMessageMoveTask,         kWrites, kMessages, kOwner)  \
  X(TagQueue,                     kWrites, kQueue,    kOwner)  \
  X(UntagQueue,                   kWrites, kQueue,    kOwner)
// clang-format on

namespace stanchion {

enum class Action {
#define STANCHION_ACTION_ENUMERATOR(name, ...) k##name,
  STANCHION_ACTIONS(STANCHION_ACTION_ENUMERATOR)
#undef STANCHION_ACTION_ENUMERATOR
};

struct ActionTraits {
  Effect effect;
  Touches touches;
  GrantedTo granted_to;
};

inline constexpr std::array kActions{
#define STANCHION_ACTION_TRAITS(name, effect, touches, granted_to) \
  ActionTraits{Effect::effect, Touches::touches, GrantedTo::granted_to},
    STANCHION_ACTIONS(STANCHION_ACTION_TRAITS)
#undef STANCHION_ACTION_TRAITS
};

inline constexpr std::array kActionNames{
#define STANCHION_ACTION_NAME(name, ...) std::string_view(#name),
    STANCHION_ACTIONS(STANCHION_ACTION_NAME)
#undef STANCHION_ACTION_NAME
};

constexpr const ActionTraits& traits_of(Action action) {
  return kActions[static_cast<std::size_t>(action)];
}

constexpr std::string_view name_of(Action action) {
  return kActionNames[static_cast<std::size_t>(action)];
}

constexpr std::optional<Action> find_action(std::string_view name) {
  for (std::size_t i = 0; i < kActionNames.size(); ++i)
    if (kActionNames[i] == name) return static_cast<Action>(i);
  return std::nullopt;
}

// An action that SQS does not have; unknown to a strict server.
constexpr bool is_extension(Action action) {
  return name_of(action).starts_with("Stanchion");
}

static_assert(kActions.size() == 26);

}  // namespace stanchion

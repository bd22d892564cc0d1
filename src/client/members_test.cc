// The client's tables of members and the server's name the same members for every action.
#include "client/members.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "wire/schema.h"

namespace stanchion::client {
namespace {

using Names = std::set<std::string, std::less<>>;

// The deprecated name of MessageSystemAttributeNames, and the lists that SQS refuses.
const Names kServerOnly{"AttributeNames of ReceiveMessage", "StringListValues", "BinaryListValues"};

template <class T>
void add_server_names(Names& names) {
  std::apply(
      [&](const auto&... fields) {
        [[maybe_unused]] const auto one = [&](const auto& field) {
          using Field = std::decay_t<decltype(field)>;
          if constexpr (Field::kind == wire::Kind::kInlined)
            add_server_names<typename Field::Value>(names);
          else
            names.emplace(field.json);
        };
        (one(fields), ...);
      },
      wire::Schema<T>::fields);
}

template <class Ours, class Servers>
void expect_same(const std::string& action) {
  Names ours;
  std::apply([&](const auto&... members) { (ours.emplace(members.name), ...); },
             Members<Ours>::list);
  Names servers;
  add_server_names<Servers>(servers);
  std::erase_if(servers, [&](const std::string& name) {
    return kServerOnly.contains(name) || kServerOnly.contains(name + " of " + action);
  });
  EXPECT_EQ(ours, servers) << action;
}

TEST(Members, EveryRequestHasTheMembersThatTheServerReads) {
#define STANCHION_EXPECT_SAME(name, ...) expect_same<name##Request, stanchion::name>(#name);
  STANCHION_ACTIONS(STANCHION_EXPECT_SAME)
#undef STANCHION_EXPECT_SAME
}

TEST(Members, EntriesAndAttributesDoAsWell) {
  expect_same<SendMessageBatchRequestEntry, stanchion::SendMessageBatch::Entry>("entry");
  expect_same<DeleteMessageBatchRequestEntry, stanchion::DeleteMessageBatch::Entry>("entry");
  expect_same<ChangeMessageVisibilityBatchRequestEntry,
              stanchion::ChangeMessageVisibilityBatch::Entry>("entry");
  expect_same<MessageAttributeValue, stanchion::MessageAttribute>("attribute");
}

}  // namespace
}  // namespace stanchion::client

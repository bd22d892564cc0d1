#include "settings/provision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "settings/settings_file.h"

namespace stanchion::settings {
namespace {

// A server that knows just enough about queues, and records the changes that it was asked for.
class FakeServer {
 public:
  Reply operator()(Request request) {
    if (auto* create = std::get_if<CreateQueue>(&request)) {
      changes_.push_back("create " + create->queue.name);
      queues_[create->queue] = {create->attributes, create->tags};
      return QueueUrlResult{create->queue};
    }
    if (auto* set = std::get_if<SetQueueAttributes>(&request)) {
      if (set->attributes.contains(refused_))
        return refuse(ErrorCode::kInvalidAttributeValue, "no.");
      for (const auto& [name, value] : set->attributes) {
        changes_.push_back("set " + set->queue.name + " " + name + "=" + value);
        queues_[set->queue].attributes[name] = value;
      }
      return NoResult{};
    }
    if (auto* tag = std::get_if<TagQueue>(&request)) {
      for (const auto& [name, value] : tag->tags) {
        changes_.push_back("tag " + tag->queue.name + " " + name);
        queues_[tag->queue].tags[name] = value;
      }
      return NoResult{};
    }
    if (auto* get = std::get_if<GetQueueAttributes>(&request))
      return QueueAttributesResult{queues_[get->queue].attributes};
    if (auto* tags = std::get_if<ListQueueTags>(&request))
      return QueueTagsResult{queues_[tags->queue].tags};
    const auto& queue = std::get<GetQueueUrl>(request).queue;
    if (queues_.contains(queue)) return QueueUrlResult{queue};
    return refuse(ErrorCode::kQueueDoesNotExist, "there is none");
  }

  std::vector<std::string> take_changes() { return std::exchange(changes_, {}); }
  void refuse_attribute(std::string name) { refused_ = std::move(name); }

 private:
  struct Queue {
    StringMap attributes;
    StringMap tags;
  };
  std::map<QueueRef, Queue> queues_;
  std::vector<std::string> changes_;
  std::string refused_ = "none";
};

Settings parse(std::string_view text) {
  Settings settings;
  EXPECT_EQ(read_settings_text(text, "s.toml", settings), std::vector<std::string>());
  return settings;
}

constexpr std::string_view kTwoQueues =
    "[[queue]]\nname = \"work\"\n[queue.attributes]\nDelaySeconds = 5\n[queue.tags]\na = \"b\"\n"
    "[queue.redrive]\ndead_letter = \"dead\"\nmax_receive_count = 3\n[[queue]]\nname = \"dead\"\n";

TEST(Provision, QueuesComeBeforeTheirDeadLetterPolicies) {
  FakeServer server;
  const auto made = provision_queues(parse(kTwoQueues), std::ref(server));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->created, 2u);
  EXPECT_EQ(
      server.take_changes(),
      (std::vector<std::string>{
          "create work", "create dead",
          R"(set work RedrivePolicy={"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3})"}));
}

TEST(Provision, ASecondTimeChangesNothing) {
  FakeServer server;
  ASSERT_TRUE(provision_queues(parse(kTwoQueues), std::ref(server)));
  server.take_changes();
  const auto again = provision_queues(parse(kTwoQueues), std::ref(server));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->created + again->changed, 0u);
  EXPECT_EQ(server.take_changes(), std::vector<std::string>());
}

TEST(Provision, OnlyWhatDiffersIsChanged) {
  FakeServer server;
  ASSERT_TRUE(provision_queues(parse(kTwoQueues), std::ref(server)));
  server.take_changes();
  std::string text(kTwoQueues);
  text.replace(text.find("Seconds = 5"), 11, "Seconds = 6");
  text.replace(text.find("a = \"b\""), 7, "a = \"c\"");
  ASSERT_TRUE(provision_queues(parse(text), std::ref(server)));
  EXPECT_EQ(server.take_changes(),
            (std::vector<std::string>{"set work DelaySeconds=6", "tag work a"}));
}

TEST(Provision, AFailureNamesTheQueueAndTheSetting) {
  FakeServer server;
  ASSERT_TRUE(provision_queues(parse("[[queue]]\nname = \"q\"\n"), std::ref(server)));
  server.refuse_attribute("DelaySeconds");
  const auto made = provision_queues(
      parse("\n[[queue]]\nname = \"q\"\n[queue.attributes]\nDelaySeconds = 5\n"), std::ref(server));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "s.toml:5: queue q: attributes DelaySeconds: no.");
}

}  // namespace
}  // namespace stanchion::settings

#include "service/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "model/limits.h"
#include "policy/warnings.h"
#include "wire/queue_url.h"

namespace stanchion::service {
namespace {

using broker::QueueFigures;

// Of events in the last few minutes, fewer than this mean nothing.
constexpr std::uint64_t kLateDeletesMin = 3;
constexpr std::uint64_t kOftenReceivedMin = 3;
constexpr std::uint64_t kEmptyPollsMin = 30;
constexpr std::uint64_t kSendsMin = 500;
constexpr std::size_t kBacklogMin = 500;
// Late deletes matter if they are more than one in this many.
constexpr std::uint64_t kLateShare = 20;
constexpr std::uint64_t kSinglesPerBatched = 4;
constexpr std::size_t kInFlightPercent = 80;

// The text as one word of a shell. A Host header may hold what a shell takes for its own, as
// `$(…)`, and somebody will paste the command.
std::string shell_word(std::string_view text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'')
      word += "'\\''";
    else
      word += c;
  }
  return word + "'";
}

// Keeps the advice about the first queues, in whatever order it comes.
class Collector {
 public:
  enum class Form { kWhole, kKinds };
  // What the answer needs for each besides what it says is its queue's URL.
  Collector(std::size_t base_url_size, Form form) : url_size_(base_url_size), form_(form) {}

  void add(Advice advice) {
    if (form_ == Form::kKinds) advice.text = advice.command = std::string();
    bytes_ += size_of(advice);
    out_.advice.push_back(std::move(advice));
    if (bytes_ > 2 * kAdviceBytesMax) cut();
  }

  Advised take() {
    cut();
    return std::move(out_);
  }

 private:
  std::size_t size_of(const Advice& one) const {
    return sizeof(Advice) + 2 * one.queue.name.size() + url_size_ + one.text.size() +
           one.command.size();
  }

  void cut() {
    std::ranges::sort(out_.advice, {},
                      [](const Advice& one) { return std::tie(one.queue, one.kind); });
    while (bytes_ > kAdviceBytesMax) {
      bytes_ -= size_of(out_.advice.back());
      out_.advice.pop_back();
      ++out_.left_out;
    }
  }

  const std::size_t url_size_;
  const Form form_;
  Advised out_;
  std::size_t bytes_ = 0;
};

class Adviser {
 public:
  Adviser(std::string_view base_url, const std::map<std::string, const QueueFigures*>& by_arn,
          Collector& out)
      : base_url_(base_url), by_arn_(by_arn), out_(out) {}

  void look_at(const QueueFigures& queue) {
    look_at_timeout(queue);
    look_at_poison(queue);
    look_at_polling(queue);
    look_at_sends(queue);
    look_at_dead_letters(queue);
    look_at_limits(queue);
  }

 private:
  void add(const QueueRef& queue, std::string_view kind, std::string text, std::string command) {
    out_.add({queue, std::string(kind), std::move(text), std::move(command)});
  }

  // The AWS CLI does not take the endpoint from the queue's URL: without --endpoint-url the call
  // would go to AWS, signed with whatever keys are configured there. Likewise the region.
  std::string set(const QueueRef& queue, std::string_view attributes) const {
    std::string url;
    wire::append_queue_url(url, base_url_, queue);
    return fmt::format(
        "aws sqs set-queue-attributes --endpoint-url {} --region {} --queue-url {} --attributes {}",
        shell_word(base_url_), shell_word(queue.region), shell_word(url), attributes);
  }

  void look_at_timeout(const QueueFigures& queue) {
    const auto& habits = queue.habits;
    if (habits.late_deletes < kLateDeletesMin ||
        habits.late_deletes * kLateShare < habits.deletes + habits.late_deletes)
      return;
    const auto held = std::chrono::floor<std::chrono::seconds>(habits.held_longest).count();
    // Half as much again, so that the next slow job does not loop either.
    const std::int64_t enough = std::min<std::int64_t>(
        std::max(held, queue.visibility_seconds) * 3 / 2 + 1, limits::kVisibilityTimeoutSecondsMax);
    add(queue.queue, "VisibilityLoop",
        fmt::format("Of the last {} deleted messages, {} had become visible again before they "
                    "were deleted: other consumers may have received and handled them, too. The "
                    "visibility timeout is {} s, and one message was held for {} s: it is too "
                    "short by at least {} s, or consumers should extend it while they work.",
                    habits.deletes + habits.late_deletes, habits.late_deletes,
                    queue.visibility_seconds, held,
                    std::max<std::int64_t>(1, held - queue.visibility_seconds)),
        set(queue.queue, fmt::format("VisibilityTimeout={}", enough)));
  }

  void look_at_poison(const QueueFigures& queue) {
    if (queue.habits.often_received < kOftenReceivedMin || !queue.dead_letter_target.empty())
      return;
    QueueRef dead = queue.queue;
    if (queue.fifo) dead.name.resize(dead.name.size() - kFifoSuffix.size());
    dead.name += queue.fifo ? "-dead.fifo" : "-dead";
    add(queue.queue, "PoisonMessage",
        fmt::format("Some messages keep coming back: recently, {} deliveries were the {}th or a "
                    "later delivery of their message, and the queue has no dead-letter queue for "
                    "such messages. Create one and name it here.",
                    queue.habits.often_received, limits::kOftenReceived),
        set(queue.queue, fmt::format(R"('{{"RedrivePolicy":"{{\"deadLetterTargetArn\":\"{}\",)"
                                     R"(\"maxReceiveCount\":\"{}\"}}"}}')",
                                     dead.arn(), limits::kOftenReceived)));
  }

  void look_at_polling(const QueueFigures& queue) {
    const auto& habits = queue.habits;
    if (habits.empty_polls < kEmptyPollsMin || habits.empty_polls <= habits.full_receives) return;
    add(queue.queue, "ShortPolling",
        fmt::format("Of the last {} receives, {} returned at once without a message. With long "
                    "polling, a consumer waits for a message instead of asking again.",
                    habits.empty_polls + habits.full_receives, habits.empty_polls),
        set(queue.queue,
            fmt::format("ReceiveMessageWaitTimeSeconds={}", limits::kWaitTimeSecondsMax)));
  }

  void look_at_sends(const QueueFigures& queue) {
    const auto& habits = queue.habits;
    const std::uint64_t sends = habits.single_sends + habits.batched_sends;
    if (habits.single_sends >= kSendsMin &&
        habits.single_sends > habits.batched_sends * kSinglesPerBatched)
      add(queue.queue, "SingleSends",
          fmt::format("{} of the last {} messages were sent one by one. SendMessageBatch sends ten "
                      "in one call, at a fraction of the cost.",
                      habits.single_sends, sends),
          "");
    if (sends >= kSendsMin && sends * 2 > habits.deletes * 3 && queue.counts.visible >= kBacklogMin)
      add(queue.queue, "Backlog",
          fmt::format("Messages arrive faster than they are handled: recently, {} were sent and {} "
                      "deleted, and {} are waiting. Use more consumers, or faster ones.",
                      sends, habits.deletes, queue.counts.visible),
          "");
  }

  void look_at_dead_letters(const QueueFigures& queue) {
    if (queue.dead_letter_target.empty()) return;
    if (queue.fifo)
      add(queue.queue, "FifoDeadLetters",
          "It is a FIFO queue with a dead-letter queue: a message that fails too often moves "
          "there, and later messages of its group are handled without it. If the order within a "
          "group matters, let the message block its group until you have fixed the cause.",
          set(queue.queue, "RedrivePolicy="));
    const auto found = by_arn_.find(queue.dead_letter_target);
    if (found == by_arn_.end() || found->second->retention_seconds >= queue.retention_seconds)
      return;
    const QueueFigures& dead = *found->second;
    add(dead.queue, "DeadLetterRetention",
        fmt::format(
            "It is the dead-letter queue of {0} and keeps messages for {1} s, but {0} keeps them "
            "for {2} s. On a standard queue, retention counts from the first send: a dead letter "
            "may expire before anybody sees it.",
            queue.queue.name, dead.retention_seconds, queue.retention_seconds),
        set(dead.queue, fmt::format("MessageRetentionPeriod={}", limits::kRetentionSecondsMax)));
  }

  void look_at_limits(const QueueFigures& queue) {
    if (queue.counts.in_flight * 100 < limits::kInFlightMax * kInFlightPercent) return;
    add(queue.queue, "InFlightLimit",
        fmt::format("{} messages are in flight, and at {} receives return nothing. Consumers "
                    "should delete finished messages, and receive fewer at a time.",
                    queue.counts.in_flight, limits::kInFlightMax),
        "");
  }

  const std::string_view base_url_;
  const std::map<std::string, const QueueFigures*>& by_arn_;
  Collector& out_;
};

void look_at_queues(std::span<const broker::ShardFigures> shards, std::string_view base_url,
                    Collector& out) {
  // Only those that are named as a dead-letter queue.
  std::map<std::string, const QueueFigures*> by_arn;
  for (const auto& shard : shards)
    for (const QueueFigures& queue : shard.queues)
      if (!queue.dead_letter_target.empty()) by_arn.emplace(queue.dead_letter_target, nullptr);
  if (!by_arn.empty())
    for (const auto& shard : shards)
      for (const QueueFigures& queue : shard.queues)
        if (const auto found = by_arn.find(queue.queue.arn()); found != by_arn.end())
          found->second = &queue;
  std::erase_if(by_arn, [](const auto& entry) { return entry.second == nullptr; });
  Adviser adviser(base_url, by_arn, out);
  for (const auto& shard : shards)
    for (const QueueFigures& queue : shard.queues) adviser.look_at(queue);
}

}  // namespace

Advised advise(std::span<const broker::ShardFigures> shards,
               const std::map<QueueRef, std::string>& policies, std::string_view base_url) {
  Collector out(base_url.size(), Collector::Form::kWhole);
  look_at_queues(shards, base_url, out);
  for (const auto& [queue, text] : policies) {
    const auto policy = policy::parse_policy(text);
    if (!policy) continue;  // Of an earlier release: whoever calls is told.
    const auto warnings = policy::warnings_about(*policy, queue.arn());
    if (warnings.empty()) continue;
    out.add({queue, "PolicyWithoutEffect",
             fmt::format("Parts of its policy look wrong: {}.", policy::summary_of(warnings)), ""});
  }
  return out.take();
}

Advised kinds_of_advice(std::span<const broker::ShardFigures> shards) {
  Collector out(0, Collector::Form::kKinds);
  look_at_queues(shards, "", out);
  return out.take();
}

}  // namespace stanchion::service

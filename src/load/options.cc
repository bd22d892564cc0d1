#include "load/options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "load/ledger.h"

namespace stanchion::load {
namespace {

constexpr std::array<std::pair<Workload, std::string_view>, 7> kNames{{
    {Workload::kSend, "send"},
    {Workload::kReceive, "receive"},
    {Workload::kDelete, "delete"},
    {Workload::kCycle, "cycle"},
    {Workload::kWakeUp, "wake-up"},
    {Workload::kHttp, "http"},
    {Workload::kFdatasync, "fdatasync"},
}};

constexpr std::size_t kBodySizeMax = 1 << 20;
constexpr std::size_t kBatchMax = 10;
// The number of messages that SQS allows in flight in a queue, which bounds a round of receives.
constexpr std::uint64_t kRoundMax = 120'000;

}  // namespace

std::string_view name_of(Workload workload) {
  for (const auto& [value, name] : kNames)
    if (value == workload) return name;
  return "";
}

std::optional<Workload> workload_named(std::string_view name) {
  for (const auto& [value, known] : kNames)
    if (known == name) return value;
  return std::nullopt;
}

std::vector<std::string> find_problems(const Options& o) {
  std::vector<std::string> problems;
  const auto need = [&](bool holds, std::string text) {
    if (!holds) problems.push_back(std::move(text));
  };
  const auto within = [&](std::string_view flag, std::uint64_t value, std::uint64_t low,
                          std::uint64_t high) {
    need(value >= low && value <= high, fmt::format("{} must be from {} to {}", flag, low, high));
  };
  within("--connections", o.connections, 1, 50'000);
  within("--body-size", o.body_size, o.uses_queues() ? kBodySizeMin : 1, kBodySizeMax);
  within("--batch", o.batch, 1, kBatchMax);
  within("--queues", o.queues, 1, kQueuesMax);
  within("--groups", o.groups, 0, kGroupsMax);
  within("--wait", o.wait, 0, 20);
  within("--round", o.round, 1, kRoundMax);
  need(o.batch * o.body_size <= kBodySizeMax,
       "a batch holds at most 1 MiB: take a smaller --batch or --body-size");
  need(o.rate >= 0 && o.rate <= 1e7, "--rate must be from 0 to 10000000");
  need(o.seconds > 0 && o.seconds <= 86'400, "--duration must be above 0 and at most a day");
  need(o.warm_up >= 0 && o.warm_up <= 3600, "--warm-up must be from 0 to 3600");
  need(o.count <= kMessagesMax && o.backlog <= kMessagesMax,
       fmt::format("--count and --backlog must be at most {}", kMessagesMax));
  const bool by_rounds = o.workload == Workload::kReceive || o.workload == Workload::kDelete;
  need(!by_rounds || !o.fifo,
       "what was received from a FIFO queue locks its group: measure --workload cycle instead");
  need(o.workload != Workload::kWakeUp || o.connections >= 2,
       "a wake-up needs --connections 2 at least: one sends, the others wait");
  need(o.workload != Workload::kFdatasync || !o.file.empty(),
       "--workload fdatasync needs --file DIR, a directory on the disk to be measured");
  need(o.queue.empty() || o.queues == 1, "--queue names one queue: leave out --queues");
  need(o.queue.empty() || o.queue.ends_with(".fifo") == o.fifo,
       "the name of a FIFO queue ends in .fifo, and --fifo says that it is one");
  need(o.access_key_id.empty() == o.secret.empty(),
       "an access key needs both $AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY");
  return problems;
}

}  // namespace stanchion::load

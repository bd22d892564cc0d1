#include "runner/lambda_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/lambda_event.h"

namespace stanchion::runner {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using worker::Verdict;

// The longest that a function of Lambda may run.
constexpr seconds kInvocationTime(900);
constexpr seconds kConnectTime(5);
// Of an invocation, with room for what is around the records.
constexpr std::size_t kPayloadMax = 6'000'000;
constexpr std::size_t kAnswerBytesMax = 6'291'556;
// Without a window, messages that come from one receive are still gathered.
constexpr milliseconds kGather(10);

std::string group_of(const worker::TaskInformation& task) {
  const auto found = task.attributes.find("MessageGroupId");
  return found == task.attributes.end() ? std::string() : found->second;
}

}  // namespace

net::Url invocation_url(net::Url url) {
  if (url.path == "/" && url.host.find(".lambda-url.") == std::string::npos)
    url.path = "/2015-03-31/functions/function/invocations";
  return url;
}

LambdaRunner::LambdaRunner(const WorkSettings& settings, net::Url url, std::vector<Filter> filters,
                           JobStatus& job_status)
    : settings_(settings),
      url_(std::move(url)),
      filters_(std::move(filters)),
      job_status_(job_status),
      loop_({.connect_timeout = kConnectTime,
             .request_timeout = settings.timeout > 0 ? seconds(settings.timeout) : kInvocationTime,
             .limits = {.body_bytes = kAnswerBytesMax},
             .idle_max = settings.concurrency}) {}

void LambdaRunner::attach(worker::QueueOptions& queue) {
  auto& mapping = *mappings_.emplace_back(std::make_unique<Mapping>());
  mapping.fifo = queue.url.ends_with(".fifo");
  queue.concurrency = settings_.batch_size * settings_.concurrency;
  queue.groups_together = mapping.fifo;
  queue.async_handler = [this, &mapping](const worker::Task& task, worker::Answer answer) {
    loop_.post([this, &mapping, task, answer = std::move(answer)]() mutable {
      begin(mapping, task, std::move(answer));
    });
  };
}

void LambdaRunner::begin(Mapping& mapping, const worker::Task& task, worker::Answer answer) {
  auto record = lambda_record(*task);
  std::string text = boost::json::serialize(record);
  if (!filters_.empty()) {
    const auto value = record_for_filter(std::move(record));
    if (std::ranges::none_of(filters_, [&](const Filter& f) { return f.matches(value); })) {
      ++filtered_;
      return answer(Verdict::done());
    }
  }
  mapping.waiting.push_back({task, std::move(answer), std::move(text),
                             mapping.fifo ? group_of(*task) : std::string(), steady_clock::now()});
  invoke_what_is_ready(mapping);
}

std::vector<std::size_t> LambdaRunner::next_batch(const Mapping& mapping, bool& full) const {
  std::vector<std::size_t> chosen;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < mapping.waiting.size(); ++i) {
    const Job& job = mapping.waiting[i];
    if (mapping.fifo && mapping.busy_groups.contains(job.group)) continue;
    bytes += job.record.size() + 1;
    full = !chosen.empty() && bytes > kPayloadMax;
    if (full) break;
    chosen.push_back(i);
    full = chosen.size() == settings_.batch_size;
    if (full) break;
  }
  return chosen;
}

// What was lost while it waited comes again by itself; in a FIFO queue what follows it must wait.
void LambdaRunner::drop_lost(Mapping& mapping) {
  std::unordered_set<std::string> groups;
  std::deque<Job> held;
  std::vector<Job> dropped;
  for (Job& job : mapping.waiting) {
    const bool drop = job.task->loss().has_value() || (mapping.fifo && groups.contains(job.group));
    if (drop) groups.insert(job.group);
    if (drop)
      dropped.push_back(std::move(job));
    else
      held.push_back(std::move(job));
  }
  mapping.waiting = std::move(held);
  for (auto job = dropped.rbegin(); job != dropped.rend(); ++job) job->answer(Verdict::retry());
}

void LambdaRunner::invoke_what_is_ready(Mapping& mapping) {
  if (std::ranges::any_of(mapping.waiting,
                          [](const Job& job) { return job.task->loss().has_value(); }))
    drop_lost(mapping);
  while (mapping.batches.size() < settings_.concurrency) {
    bool full = false;
    const auto chosen = next_batch(mapping, full);
    if (chosen.empty()) return;
    const auto window = finishing_
                            ? milliseconds(0)
                            : std::max(kGather, milliseconds(seconds(settings_.batch_window)));
    const auto waited = steady_clock::now() - mapping.waiting[chosen.front()].since;
    if (!full && waited < window)
      return look_later(mapping, std::chrono::ceil<milliseconds>(window - waited));
    invoke(mapping, chosen);
  }
}

void LambdaRunner::look_later(Mapping& mapping, milliseconds delay) {
  if (std::exchange(mapping.timed, true)) return;
  loop_.after(delay, [this, &mapping] {
    mapping.timed = false;
    invoke_what_is_ready(mapping);
  });
}

void LambdaRunner::invoke(Mapping& mapping, const std::vector<std::size_t>& chosen) {
  Batch batch;
  std::vector<std::string> records;
  for (const std::size_t at : chosen) {
    Job& job = mapping.waiting[at];
    if (mapping.fifo) mapping.busy_groups.insert(job.group);
    records.push_back(std::move(job.record));
    batch.jobs.push_back(std::move(job));
  }
  for (auto at = chosen.rbegin(); at != chosen.rend(); ++at)
    mapping.waiting.erase(mapping.waiting.begin() + static_cast<std::ptrdiff_t>(*at));
  ++invocations_;
  const std::uint64_t number = ++next_;
  const auto [where, added] = mapping.batches.emplace(number, std::move(batch));
  where->second.call =
      loop_.call({.method = "POST",
                  .url = url_,
                  .headers = {{"Content-Type", "application/json"}},
                  .body = lambda_event(records)},
                 [this, &mapping, number](const Result<net::ClientResponse>& response) {
                   end(mapping, number, response);
                 });
}

void LambdaRunner::end(Mapping& mapping, std::uint64_t number,
                       const Result<net::ClientResponse>& response) {
  auto batch = mapping.batches.extract(number);
  if (!batch) return;
  std::vector<Job> jobs = std::move(batch.mapped().jobs);
  std::set<std::string> sent;
  for (const Job& job : jobs) {
    sent.insert(job.task->message_id);
    mapping.busy_groups.erase(job.group);
  }
  Result<std::set<std::string>> failed =
      response ? failed_messages(*response, settings_.partial_response, sent)
               : Result<std::set<std::string>>(std::unexpected(response.error()));
  if (!failed) {
    ++errors_;
    job_status_.problem(fmt::format("{}: {}; the {} messages of the batch are retried",
                                    jobs.front().task->queue_name, failed.error().message,
                                    jobs.size()));
    failed = std::move(sent);
  } else if (!failed->empty()) {
    job_status_.problem(
        fmt::format("{}: the function failed for {} of {} messages, which are retried",
                    jobs.front().task->queue_name, failed->size(), jobs.size()));
  }
  settle(mapping, std::move(jobs), *failed);
  invoke_what_is_ready(mapping);
}

void LambdaRunner::settle(Mapping& mapping, std::vector<Job> jobs,
                          const std::set<std::string>& failed) {
  std::unordered_set<std::string> failed_groups;
  std::vector<std::pair<Job, Verdict>> back;
  for (Job& job : jobs) {
    // What comes after a failure in a FIFO group must not overtake it.
    if (mapping.fifo && failed_groups.contains(job.group)) {
      back.emplace_back(std::move(job), Verdict::retry());
    } else if (failed.contains(job.task->message_id)) {
      if (mapping.fifo) failed_groups.insert(job.group);
      back.emplace_back(std::move(job), Verdict::retry_with_backoff());
    } else {
      job.answer(Verdict::done());
    }
  }
  for (Job& job : take_waiting_of(mapping, failed_groups))
    back.emplace_back(std::move(job), Verdict::retry());
  // The last ones first: the group stays locked until the first one is back.
  for (auto at = back.rbegin(); at != back.rend(); ++at) at->first.answer(at->second);
}

std::vector<LambdaRunner::Job> LambdaRunner::take_waiting_of(
    Mapping& mapping, const std::unordered_set<std::string>& groups) {
  std::vector<Job> taken;
  if (groups.empty()) return taken;
  std::deque<Job> others;
  for (Job& job : mapping.waiting)
    groups.contains(job.group) ? taken.push_back(std::move(job)) : others.push_back(std::move(job));
  mapping.waiting = std::move(others);
  return taken;
}

void LambdaRunner::finish() {
  loop_.post([this] {
    finishing_ = true;
    for (const auto& mapping : mappings_) invoke_what_is_ready(*mapping);
  });
}

void LambdaRunner::abandon() {
  loop_.post([this] {
    for (const auto& mapping : mappings_) {
      for (auto& [number, batch] : std::exchange(mapping->batches, {})) {
        loop_.cancel(batch.call);
        for (Job& job : batch.jobs) job.answer(Verdict::retry());
      }
      for (Job& job : std::exchange(mapping->waiting, {})) job.answer(Verdict::retry());
    }
  });
}

void LambdaRunner::add_metrics(PrometheusText& text) const {
  using enum PrometheusText::Type;
  text.family("stanchion_work_invocations_total", kCounter, "Batches sent to the function.");
  text.sample({}, invocations_.load());
  text.family("stanchion_work_invocation_errors_total", kCounter,
              "Invocations that failed as a whole.");
  text.sample({}, errors_.load());
  text.family("stanchion_work_filtered_total", kCounter,
              "Messages deleted because no pattern matches.");
  text.sample({}, filtered_.load());
}

}  // namespace stanchion::runner

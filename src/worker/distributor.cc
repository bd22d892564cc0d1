#include "worker/distributor.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/text.h"
#include "client/batcher.h"
#include "worker/fair_shares.h"
#include "worker/task.h"
#include "worker/visibility_monitor.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kReceiveMax = 10;
constexpr seconds kWait{20};
constexpr milliseconds kAgain{1'000};  // After a call that failed.
constexpr seconds kVisibilityMax{240};
constexpr const char* kVisible = "ApproximateNumberOfMessages";

client::Error invalid(const std::string& message) {
  return {
      .code = client::code::kInvalidSettings, .message = message, .fault = client::Fault::kLocal};
}

std::optional<client::Error> check_options(const DistributorOptions& options) {
  if (options.work_queue_url.empty())
    return invalid("there is no queue of work; set DistributorOptions::work_queue_url");
  if (options.tenants.empty())
    return invalid("there is no tenant; set DistributorOptions::tenants");
  if (options.window < 1) return invalid("DistributorOptions::window must be at least 1");
  if (options.polls_max < 1) return invalid("DistributorOptions::polls_max must be at least 1");
  if (options.visibility < seconds(1) || options.visibility > kVisibilityMax)
    return invalid("DistributorOptions::visibility must be from 1 to 240 seconds");
  for (const TenantOptions& tenant : options.tenants) {
    if (tenant.queue_url.empty()) return invalid("a tenant has no queue; set queue_url");
    if (!(tenant.weight > 0)) return invalid(tenant.queue_url + ": the weight must be above 0");
    if (tenant.queue_url == options.work_queue_url)
      return invalid(tenant.queue_url + ": a tenant's queue cannot be the queue of work");
  }
  return std::nullopt;
}

std::string group_of(const TaskInformation& task) {
  const auto found = task.attributes.find("MessageGroupId");
  return found == task.attributes.end() ? std::string() : found->second;
}

client::SendMessageRequest request_of(const TaskInformation& task, const std::string& queue_url) {
  client::SendMessageRequest request{.queue_url = queue_url,
                                     .message_body = task.body,
                                     .message_attributes = task.message_attributes};
  const std::string group = group_of(task);
  if (!group.empty()) request.message_group_id = group;
  if (queue_url.ends_with(".fifo")) {
    if (group.empty()) request.message_group_id = task.queue_name;
    request.message_deduplication_id = task.message_id;
  }
  return request;
}

}  // namespace

// One thread does everything in turn: it looks at the queue of work, sends what it has room for, and
// extends what it has in hand. Receives and deletes end on the client's thread, which only adds to
// lists, under the mutex.
class MessageDistributor::Impl {
 public:
  Impl(client::Client& client, DistributorOptions options)
      : client_(client),
        options_(std::move(options)),
        batcher_(client),
        monitor_(
            {.period = options_.visibility}, [this](const ExtensionBatch& b) { extend(b); },
            [this](const Task& task, Loss) { lost_.insert(task->id); }) {}
  ~Impl();

  std::optional<client::Error> prepare();
  void begin() {
    thread_ = std::thread([this] { run(); });
  }
  std::vector<TenantMetrics> metrics();

 private:
  struct Tenant {
    std::string url;
    std::string name;
    bool fifo = false;
    std::deque<Task> in_hand = {};
    bool polled = false;
    Instant poll_not_before{};
    client::CallId poll{};
    TenantMetrics metrics = {};
  };
  struct Chosen {
    std::size_t tenant;
    Task task;
  };

  // With the mutex, all of these but run(), room() and send().
  void run();
  std::optional<std::size_t> room();
  bool send(const std::vector<Chosen>& chosen);
  void poll_all(Instant now);
  void poll(std::size_t at);
  void received(std::size_t at, client::Outcome<client::ReceiveMessageResult> outcome);
  std::vector<Chosen> choose(std::size_t room, Instant now);
  void remove(const Chosen& moved);
  void give_back(Tenant& tenant);
  void extend(const ExtensionBatch& batch);
  void report(Tenant& tenant, const std::string& what);
  void wait(std::unique_lock<std::mutex>& lock, bool full);
  void wake() {
    woken_ = true;
    changed_.notify_all();
  }

  // A completion that takes the mutex; the destructor waits for it.
  template <class Body>
  auto counted(Body body) {
    ++calls_;
    return [this, body = std::move(body)](auto outcome) {
      const std::lock_guard lock(mutex_);
      body(std::move(outcome));
      --calls_;
      wake();
    };
  }

  client::Client& client_;
  const DistributorOptions options_;
  client::Batcher batcher_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  bool stopping_ = false;
  std::size_t calls_ = 0;
  std::size_t polls_ = 0;
  std::size_t next_poll_ = 0;  // The tenant whose turn it is to be asked.
  std::uint64_t next_id_ = 0;
  std::vector<Tenant> tenants_;
  FairShares shares_;
  VisibilityMonitor monitor_;
  std::set<TaskId> lost_;  // Of those in hand: another may have received them.
  std::vector<std::pair<Instant, Chosen>> not_removed_;
  std::thread thread_;
};

MessageDistributor::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Tenant& tenant : tenants_)
      if (tenant.polled) client_.cancel(tenant.poll);
    wake();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  for (Tenant& tenant : tenants_) give_back(tenant);
  lock.unlock();
  batcher_.drain();
  lock.lock();
  changed_.wait(lock, [this] { return calls_ == 0; });
}

std::optional<client::Error> MessageDistributor::Impl::prepare() {
  const auto known = [this](const std::string& url) -> std::optional<client::Error> {
    auto asked = client_.get_queue_attributes({.queue_url = url, .attribute_names = {kVisible}});
    if (asked) return std::nullopt;
    client::Error error = asked.error();
    error.message = url + ": " + error.message;
    return error;
  };
  if (auto error = known(options_.work_queue_url)) return error;
  for (const TenantOptions& options : options_.tenants) {
    if (auto error = known(options.queue_url)) return error;
    Tenant& tenant = tenants_.emplace_back();
    tenant.url = tenant.metrics.queue_url = options.queue_url;
    tenant.name = tenant.url.substr(tenant.url.rfind('/') + 1);
    tenant.fifo = tenant.name.ends_with(".fifo");
    shares_.add(options.weight, options.priority, options.rate_max);
  }
  return std::nullopt;
}

void MessageDistributor::Impl::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    const Instant now = Clock::now();
    monitor_.tick(now);
    poll_all(now);
    for (auto& [when, moved] : std::exchange(not_removed_, {})) {
      if (when <= now)
        remove(moved);
      else
        not_removed_.emplace_back(when, moved);
    }
    const bool any =
        std::ranges::any_of(tenants_, [](const Tenant& tenant) { return !tenant.in_hand.empty(); });
    if (!any) {
      wait(lock, false);
      continue;
    }
    lock.unlock();
    const std::optional<std::size_t> places = room();
    lock.lock();
    const std::vector<Chosen> chosen = choose(places.value_or(0), Clock::now());
    lock.unlock();
    const bool sent = chosen.empty() || send(chosen);
    lock.lock();
    if (chosen.empty() || !sent || !places) wait(lock, true);
  }
}

// Until something was received, or until the next look at a queue of work that is full.
void MessageDistributor::Impl::wait(std::unique_lock<std::mutex>& lock, bool full) {
  const Instant now = Clock::now();
  Instant until = now + (full ? options_.look_every : kAgain);
  if (const auto tick = monitor_.next_tick()) until = std::min(until, *tick);
  changed_.wait_for(lock, std::max(until - now, Clock::duration(1)),
                    [&] { return stopping_ || (!full && woken_); });
}

// How many messages the queue of work may still get; nothing if that is not known.
std::optional<std::size_t> MessageDistributor::Impl::room() {
  auto asked = client_.get_queue_attributes(
      {.queue_url = options_.work_queue_url, .attribute_names = {kVisible}});
  if (!asked) {
    const std::lock_guard lock(mutex_);
    report(tenants_.front(), "cannot look at the queue of work: " + asked.error().to_string());
    return std::nullopt;
  }
  const auto waiting = parse_decimal(asked->attributes[kVisible]);
  const std::size_t count = waiting ? static_cast<std::size_t>(*waiting) : options_.window;
  return options_.window - std::min(options_.window, count);
}

std::vector<MessageDistributor::Impl::Chosen> MessageDistributor::Impl::choose(std::size_t room,
                                                                               Instant now) {
  std::vector<Chosen> chosen;
  std::set<std::pair<std::size_t, std::string>> groups;
  // What another may have received is not sent; it comes again.
  const auto drop_lost = [&](Tenant& tenant) {
    while (!tenant.in_hand.empty() && lost_.erase(tenant.in_hand.front()->id) > 0)
      tenant.in_hand.pop_front();
  };
  const auto may_go = [&](std::size_t at) {
    Tenant& tenant = tenants_[at];
    drop_lost(tenant);
    if (tenant.in_hand.empty()) return false;
    return !tenant.fifo || !groups.contains({at, group_of(*tenant.in_hand.front())});
  };
  for (std::size_t i = 0; i < tenants_.size(); ++i) shares_.set_waiting(i, may_go(i));
  while (chosen.size() < room) {
    const auto turn = shares_.next(now);
    if (!turn) break;
    Tenant& tenant = tenants_[*turn];
    chosen.push_back({*turn, tenant.in_hand.front()});
    if (tenant.fifo) groups.emplace(*turn, group_of(*tenant.in_hand.front()));
    tenant.in_hand.pop_front();
    shares_.set_waiting(*turn, may_go(*turn));
  }
  return chosen;
}

// Waits for the answers, so that order is known and the next look counts them. False if one failed.
bool MessageDistributor::Impl::send(const std::vector<Chosen>& chosen) {
  using Sent = client::Outcome<client::SendMessageResult>;
  std::vector<std::future<Sent>> answers;
  for (const Chosen& each : chosen) {
    const auto answered = std::make_shared<std::promise<Sent>>();
    answers.push_back(answered->get_future());
    batcher_.send(request_of(*each.task, options_.work_queue_url),
                  [answered](Sent sent) { answered->set_value(std::move(sent)); });
  }
  batcher_.flush();
  bool all = true;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Sent sent = answers[i].get();
    const std::lock_guard lock(mutex_);
    Tenant& tenant = tenants_[chosen[i].tenant];
    if (sent) {
      remove(chosen[i]);
      continue;
    }
    all = false;
    report(tenant, "cannot send message " + chosen[i].task->message_id +
                       " to the queue of work: " + sent.error().to_string());
    // It goes back after those behind it: they come again in order.
    tenant.in_hand.push_front(chosen[i].task);
    give_back(tenant);
    tenant.poll_not_before = Clock::now() + kAgain;
  }
  return all;
}

void MessageDistributor::Impl::remove(const Chosen& moved) {
  batcher_.remove(
      {moved.task->queue_url, moved.task->receipt_handle},
      counted([this, moved](const client::Outcome<client::DeleteMessageResult>& outcome) {
        Tenant& tenant = tenants_[moved.tenant];
        const bool again = !outcome && (outcome.error().fault != client::Fault::kSender ||
                                        outcome.error().throttled);
        if (!outcome)
          report(tenant, "cannot delete message " + moved.task->message_id +
                             ", which the queue of work has: " + outcome.error().to_string());
        if (again && !stopping_ && !lost_.contains(moved.task->id)) {
          not_removed_.emplace_back(Clock::now() + kAgain, moved);
          return;
        }
        if (outcome) ++tenant.metrics.moved;
        monitor_.remove(moved.task->id);
        lost_.erase(moved.task->id);
      }));
}

void MessageDistributor::Impl::give_back(Tenant& tenant) {
  for (auto task = tenant.in_hand.rbegin(); task != tenant.in_hand.rend(); ++task) {
    monitor_.remove((*task)->id);
    if (lost_.erase((*task)->id) > 0) continue;
    batcher_.change_visibility(
        {tenant.url, (*task)->receipt_handle, 0},
        // If it fails, the message comes again when its visibility ends.
        counted([](const client::Outcome<client::ChangeMessageVisibilityResult>&) {}));
  }
  tenant.in_hand.clear();
}

void MessageDistributor::Impl::poll_all(Instant now) {
  for (std::size_t i = 0; i < tenants_.size() && polls_ < options_.polls_max; ++i) {
    const std::size_t at = next_poll_++ % tenants_.size();
    Tenant& tenant = tenants_[at];
    if (!tenant.polled && tenant.in_hand.empty() && tenant.poll_not_before <= now) poll(at);
  }
}

void MessageDistributor::Impl::poll(std::size_t at) {
  Tenant& tenant = tenants_[at];
  tenant.polled = true;
  ++polls_;
  const bool all_at_once = tenants_.size() <= options_.polls_max;
  tenant.poll = client_.receive_message(
      {.queue_url = tenant.url,
       .max_number_of_messages = kReceiveMax,
       .wait_time_seconds = all_at_once ? kWait.count() : 0,
       .visibility_timeout = options_.visibility.count(),
       .message_system_attribute_names = {"All"},
       .message_attribute_names = {"All"}},
      counted([this, at](client::Outcome<client::ReceiveMessageResult> outcome) {
        received(at, std::move(outcome));
      }));
}

void MessageDistributor::Impl::received(std::size_t at,
                                        client::Outcome<client::ReceiveMessageResult> outcome) {
  const Instant now = Clock::now();
  Tenant& tenant = tenants_[at];
  tenant.polled = false;
  --polls_;
  if (!outcome) {
    tenant.poll_not_before = now + kAgain;
    if (!stopping_) report(tenant, "cannot receive: " + outcome.error().to_string());
    return;
  }
  if (outcome->messages.empty() && tenants_.size() > options_.polls_max)
    tenant.poll_not_before = now + kAgain;
  for (client::Message& message : outcome->messages) {
    TaskInformation task;
    task.id = TaskId{++next_id_};
    task.message_id = std::move(message.message_id);
    task.queue_name = tenant.name;
    task.queue_url = tenant.url;
    task.receipt_handle = std::move(message.receipt_handle);
    task.body = std::move(message.body);
    task.attributes = std::move(message.attributes);
    task.message_attributes = std::move(message.message_attributes);
    const auto shared = std::make_shared<const TaskInformation>(std::move(task));
    ++tenant.metrics.received;
    tenant.in_hand.push_back(shared);
    monitor_.add(shared, now);
  }
  if (stopping_) give_back(tenant);
}

void MessageDistributor::Impl::extend(const ExtensionBatch& batch) {
  client::ChangeMessageVisibilityBatchRequest request{.queue_url = batch.queue_url};
  std::vector<TaskId> tasks;
  for (const Extension& extension : batch.extensions) {
    request.entries.push_back({.receipt_handle = extension.receipt_handle,
                               .visibility_timeout = extension.timeout.count()});
    tasks.push_back(extension.task);
  }
  client_.change_message_visibility_batch(
      std::move(request),
      counted([this, tasks = std::move(tasks)](
                  const client::Outcome<client::ChangeMessageVisibilityBatchResult>& outcome) {
        std::vector<Extended> results(tasks.size(), Extended::kFailed);
        const auto set = [&](const std::string& id, Extended result) {
          const auto place = parse_decimal(id);
          if (place && *place < results.size()) results[static_cast<std::size_t>(*place)] = result;
        };
        if (outcome) {
          for (const auto& entry : outcome->successful) set(entry.id, Extended::kYes);
          for (const auto& entry : outcome->failed)
            if (entry.sender_fault) set(entry.id, Extended::kRefused);
        }
        for (std::size_t i = 0; i < tasks.size(); ++i)
          monitor_.answered(tasks[i], results[i], Clock::now());
      }));
}

void MessageDistributor::Impl::report(Tenant& tenant, const std::string& what) {
  ++tenant.metrics.errors;
  if (options_.on_error) options_.on_error(tenant.name + ": " + what);
}

std::vector<TenantMetrics> MessageDistributor::Impl::metrics() {
  const std::lock_guard lock(mutex_);
  std::vector<TenantMetrics> all;
  for (const Tenant& tenant : tenants_) {
    all.push_back(tenant.metrics);
    all.back().in_hand = tenant.in_hand.size();
  }
  return all;
}

client::Outcome<std::unique_ptr<MessageDistributor>> MessageDistributor::open(
    client::Client& client, DistributorOptions options) {
  if (auto error = check_options(options)) return std::move(*error);
  auto impl = std::make_unique<Impl>(client, std::move(options));
  if (auto error = impl->prepare()) return std::move(*error);
  impl->begin();
  return std::unique_ptr<MessageDistributor>(new MessageDistributor(std::move(impl)));
}

MessageDistributor::MessageDistributor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageDistributor::~MessageDistributor() = default;

std::vector<TenantMetrics> MessageDistributor::metrics() const {
  return impl_->metrics();
}

}  // namespace stanchion::worker

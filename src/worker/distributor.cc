#include "worker/distributor.h"

#include <algorithm>
#include <deque>
#include <future>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "client/batcher.h"
#include "worker/client_consumer.h"
#include "worker/copies.h"
#include "worker/fair_shares.h"
#include "worker/worker_loop.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kWait{20};           // Of a long poll.
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

}  // namespace

// The loop's thread does everything in turn: it holds what the consumers have received, looks at the
// queue of work, and sends what that has room for. It releases the mutex while it waits for the queue
// of work.
class MessageDistributor::Impl {
 public:
  Impl(client::Client& client, DistributorOptions options)
      : client_(client), options_(std::move(options)), batcher_(client) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<client::Error> prepare();
  void begin();
  std::vector<TenantMetrics> metrics();

 private:
  struct Tenant {
    Tenant(const ConsumerContext& context, seconds wait, ConsumerOptions options,
           ConsumerEvents events)
        : name(options.origin.queue_name),
          url(options.origin.queue_url),
          consumer(context, wait, std::move(options), std::move(events)) {}

    bool is_fifo() const { return name.ends_with(".fifo"); }

    const std::string name;
    const std::string url;
    ClientConsumer consumer;
    std::deque<Task> in_flight = {};  // Wait for their turn.
    std::uint64_t moved = 0;
    std::uint64_t errors = 0;
  };
  struct Chosen {
    std::size_t tenant;
    Task task;
  };
  using Sent = client::Outcome<client::SendMessageResult>;

  void add_tenant(const TenantOptions& options);
  // Without the mutex, these two.
  client::Outcome<std::size_t> room();
  std::vector<Sent> send(const std::vector<Chosen>& chosen);

  // With it, the others.
  std::optional<Instant> tick(WorkerLoop::Lock& lock, Instant now);
  std::optional<Instant> poll(Instant now);
  bool is_anything_in_flight() const;
  bool move_some(WorkerLoop::Lock& lock);
  std::vector<Chosen> choose(std::size_t room, Instant now);
  bool settle(const std::vector<Chosen>& chosen, const std::vector<Sent>& answers);
  void remove(const Chosen& moved);
  void give_back(Tenant& tenant);
  void report(Tenant& tenant, const std::string& what);

  client::Client& client_;
  const DistributorOptions options_;
  client::Batcher batcher_;
  WorkerLoop loop_;
  TaskIds ids_;
  std::vector<std::unique_ptr<Tenant>> tenants_;
  FairShares shares_;
  std::size_t next_poll_ = 0;  // The tenant whose turn it is to be asked.
  Instant look_at_{};          // The queue of work was full: when to look at it again.
};

MessageDistributor::Impl::~Impl() {
  {
    const std::lock_guard lock(loop_.mutex());
    loop_.begin_to_stop();
    for (const auto& tenant : tenants_) tenant->consumer->stop();
  }
  // After what is being sent.
  loop_.close();
  WorkerLoop::Lock lock(loop_.mutex());
  for (const auto& tenant : tenants_) {
    tenant->consumer->send_removals();
    give_back(*tenant);
  }
  lock.unlock();
  batcher_.drain();
  lock.lock();
  loop_.wait_until_settled(lock, [this] { return loop_.calls() == 0; });
  loop_.tell_now(lock);
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
    add_tenant(options);
  }
  return std::nullopt;
}

void MessageDistributor::Impl::add_tenant(const TenantOptions& options) {
  const bool all_at_once = options_.tenants.size() <= options_.polls_max;
  const std::size_t at = tenants_.size();
  const std::string& url = options.queue_url;
  tenants_.push_back(std::make_unique<Tenant>(
      ConsumerContext{client_, batcher_, loop_, ids_}, all_at_once ? kWait : seconds(0),
      ConsumerOptions{.origin = {.queue_name = url.substr(url.rfind('/') + 1), .queue_url = url},
                      .visibility = {.period = options_.visibility},
                      .receive_again = kAgain,
                      .receive_again_max = kAgain,
                      .after_nothing = all_at_once ? milliseconds(0) : kAgain,
                      .remove_again = kAgain},
      ConsumerEvents{
          .received =
              [this, at](const std::vector<Task>& tasks) {
                std::deque<Task>& in_flight = tenants_[at]->in_flight;
                in_flight.insert(in_flight.end(), tasks.begin(), tasks.end());
              },
          .answered = [this] { loop_.wake(); },
          .lost = [](const Task&, Loss) {},
          .report = [this, at](const std::string& what) { report(*tenants_[at], what); }}));
  const std::size_t share = shares_.add(options.weight, options.priority, options.rate_max);
  CHECK(share == at, "a tenant's share has the tenant's number");
}

void MessageDistributor::Impl::begin() {
  CHECK(!tenants_.empty(), "there is something to distribute");
  const std::lock_guard lock(loop_.mutex());
  loop_.start([this](WorkerLoop::Lock& held, Instant now) { return tick(held, now); });
}

std::optional<Instant> MessageDistributor::Impl::tick(WorkerLoop::Lock& lock, Instant now) {
  CHECK(lock.owns_lock(), "the loop ticks with its mutex");
  std::optional<Instant> next = poll(now);
  for (const auto& tenant : tenants_) next = earlier(next, tenant->consumer->tick(now));
  if (loop_.is_stopping() || !is_anything_in_flight()) return next;
  if (now >= look_at_) {
    if (move_some(lock)) {
      loop_.wake();
      return next;
    }
    look_at_ = Clock::now() + options_.look_every;
  }
  return earlier(next, look_at_);
}

std::optional<Instant> MessageDistributor::Impl::poll(Instant now) {
  std::size_t polls = 0;
  for (const auto& tenant : tenants_) polls += tenant->consumer->polls();
  std::optional<Instant> next;
  for (std::size_t i = 0; i < tenants_.size() && polls < options_.polls_max; ++i) {
    Tenant& tenant = *tenants_[next_poll_++ % tenants_.size()];
    if (tenant.consumer->polls() > 0 || !tenant.in_flight.empty()) continue;
    next = earlier(next, tenant.consumer->poll({.places = Consumer::kReceiveMax}, now));
    polls += tenant.consumer->polls();
  }
  CHECK(polls <= options_.polls_max, "WK2: no more receives than are allowed");
  return next;
}

bool MessageDistributor::Impl::is_anything_in_flight() const {
  return std::ranges::any_of(tenants_,
                             [](const auto& tenant) { return !tenant->in_flight.empty(); });
}

// False if the queue of work is full, if it is not known, or if a message could not be sent.
bool MessageDistributor::Impl::move_some(WorkerLoop::Lock& lock) {
  lock.unlock();
  const client::Outcome<std::size_t> places = room();
  lock.lock();
  if (!places) {
    report(*tenants_.front(), "cannot look at the queue of work: " + places.error().to_string());
    return false;
  }
  CHECK(*places <= options_.window, "no more waits than the window allows");
  const std::vector<Chosen> chosen = choose(*places, Clock::now());
  if (chosen.empty()) return false;
  lock.unlock();
  const std::vector<Sent> answers = send(chosen);
  lock.lock();
  return settle(chosen, answers);
}

// How many messages the queue of work may still get.
client::Outcome<std::size_t> MessageDistributor::Impl::room() {
  auto asked = client_.get_queue_attributes(
      {.queue_url = options_.work_queue_url, .attribute_names = {kVisible}});
  if (!asked) return asked.error();
  const auto waiting = parse_decimal(asked->attributes[kVisible]);
  const std::size_t count = waiting ? static_cast<std::size_t>(*waiting) : options_.window;
  return options_.window - std::min(options_.window, count);
}

std::vector<MessageDistributor::Impl::Chosen> MessageDistributor::Impl::choose(std::size_t room,
                                                                               Instant now) {
  std::vector<Chosen> chosen;
  std::set<std::pair<std::size_t, std::string>> groups;
  const auto may_go = [&](std::size_t at) {
    std::deque<Task>& in_flight = tenants_[at]->in_flight;
    // What another may have received is not sent; it comes again.
    while (!in_flight.empty() && !tenants_[at]->consumer->holds(in_flight.front()->id))
      in_flight.pop_front();
    if (in_flight.empty()) return false;
    return !tenants_[at]->is_fifo() || !groups.contains({at, group_of(*in_flight.front())});
  };
  for (std::size_t i = 0; i < tenants_.size(); ++i) shares_.set_waiting(i, may_go(i));
  while (chosen.size() < room) {
    const auto turn = shares_.next(now);
    if (!turn) break;
    Tenant& tenant = *tenants_[*turn];
    chosen.push_back({*turn, tenant.in_flight.front()});
    if (tenant.is_fifo()) {
      const bool first = groups.emplace(*turn, group_of(*tenant.in_flight.front())).second;
      CHECK(first, "DT3: one message of a group is sent at a time");
    }
    tenant.in_flight.pop_front();
    shares_.set_waiting(*turn, may_go(*turn));
  }
  CHECK(chosen.size() <= room, "no more is chosen than the queue of work has room for");
  return chosen;
}

// Waits for the answers, so that order is known and the next look counts them.
std::vector<MessageDistributor::Impl::Sent> MessageDistributor::Impl::send(
    const std::vector<Chosen>& chosen) {
  std::vector<std::future<Sent>> answers;
  for (const Chosen& each : chosen) {
    const auto answered = std::make_shared<std::promise<Sent>>();
    answers.push_back(answered->get_future());
    auto copy = copy_of(*each.task, options_.work_queue_url, each.task->queue_name);
    CHECK(!copy.message_deduplication_id || *copy.message_deduplication_id == each.task->message_id,
          "DT2: a message that is moved again arrives once");
    batcher_.send(std::move(copy), [answered](Sent sent) { answered->set_value(std::move(sent)); });
  }
  batcher_.flush();
  std::vector<Sent> sent;
  for (std::future<Sent>& answer : answers) sent.push_back(answer.get());
  return sent;
}

// False if a message was not sent.
bool MessageDistributor::Impl::settle(const std::vector<Chosen>& chosen,
                                      const std::vector<Sent>& answers) {
  CHECK(chosen.size() == answers.size(), "DT1: every send is answered");
  bool all = true;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Tenant& tenant = *tenants_[chosen[i].tenant];
    if (answers[i]) {
      remove(chosen[i]);
      continue;
    }
    all = false;
    report(tenant, "cannot send message " + chosen[i].task->message_id +
                       " to the queue of work: " + answers[i].error().to_string());
    // It goes back after those that follow it: they come again in order.
    tenant.in_flight.push_front(chosen[i].task);
    give_back(tenant);
    tenant.consumer->rest_until(Clock::now() + kAgain);
  }
  return all;
}

// REQUIRES: the queue of work has acknowledged the message (DT1).
void MessageDistributor::Impl::remove(const Chosen& moved) {
  Tenant& tenant = *tenants_[moved.tenant];
  tenant.consumer->remove(
      moved.task, [&tenant](const Task&, bool deleted) { tenant.moved += deleted ? 1 : 0; }, true,
      Clock::now());
}

void MessageDistributor::Impl::give_back(Tenant& tenant) {
  const std::vector<Task> tasks(tenant.in_flight.begin(), tenant.in_flight.end());
  tenant.in_flight.clear();
  tenant.consumer->give_back(tasks);
}

void MessageDistributor::Impl::report(Tenant& tenant, const std::string& what) {
  ++tenant.errors;
  if (options_.on_error)
    loop_.tell([this, text = tenant.name + ": " + what] { options_.on_error(text); });
}

std::vector<TenantMetrics> MessageDistributor::Impl::metrics() {
  const std::lock_guard lock(loop_.mutex());
  std::vector<TenantMetrics> all;
  for (const auto& tenant : tenants_)
    all.push_back({.queue_url = tenant->url,
                   .received = tenant->consumer->figures().received,
                   .moved = tenant->moved,
                   .errors = tenant->errors,
                   .in_flight = tenant->in_flight.size()});
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

#include "service/queue_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace stanchion::service {
namespace {

namespace json = boost::json;
using broker::QueueFigures;
using broker::ShardFigures;

constexpr std::size_t kQueuesShown = 200;
constexpr std::size_t kSourcesShown = 10;
constexpr std::chrono::milliseconds kInterval{1'000};
// Proxies close what is silent for a minute, and a client that has vanished is noticed only when it
// does not acknowledge.
constexpr std::chrono::seconds kSilenceMax{15};
constexpr std::string_view kComment = ":\n\n";
constexpr std::string_view kEventBegin = "data: {";
// A client whose idea of the server's time is wrong by more is told the time again.
constexpr Duration kTimeError{500};
// How long a browser waits before it connects again.
constexpr std::string_view kFirstWords = "retry: 2000\n\n";

constexpr std::array<std::pair<std::string_view, QueueOrder>, 8> kOrders{{
    {"name", QueueOrder::kName},
    {"visible", QueueOrder::kVisible},
    {"inFlight", QueueOrder::kInFlight},
    {"delayed", QueueOrder::kDelayed},
    {"oldest", QueueOrder::kOldest},
    {"sent", QueueOrder::kSent},
    {"received", QueueOrder::kReceived},
    {"deleted", QueueOrder::kDeleted},
}};

std::uint64_t sort_key(const QueueFigures& queue, QueueOrder order) {
  switch (order) {
    case QueueOrder::kName:
      return 0;
    case QueueOrder::kVisible:
      return queue.counts.visible;
    case QueueOrder::kInFlight:
      return queue.counts.in_flight;
    case QueueOrder::kDelayed:
      return queue.counts.delayed;
    case QueueOrder::kOldest:
      return queue.oldest_age ? static_cast<std::uint64_t>(queue.oldest_age->count()) + 1 : 0;
    case QueueOrder::kSent:
      return queue.activity.sent;
    case QueueOrder::kReceived:
      return queue.activity.received;
    case QueueOrder::kDeleted:
      return queue.activity.deleted;
  }
  return 0;
}

// A queue has its dead-letter queue in its own account and region: the name is enough.
std::string_view dead_letter_queue(const QueueFigures& queue) {
  const std::string_view target = queue.dead_letter_target;
  return target.substr(target.rfind(':') + 1);
}

// The queues that have a queue as their dead-letter queue: the first ones by name, and how many.
struct Sources {
  std::set<std::string_view> names;
  std::size_t count = 0;

  void add(std::string_view name) {
    ++count;
    names.insert(name);
    if (names.size() > kSourcesShown) names.erase(std::prev(names.end()));
  }
};

json::object describe(const QueueFigures& queue, const Sources& sources) {
  json::object one{{"name", queue.queue.name},
                   {"visible", queue.counts.visible},
                   {"inFlight", queue.counts.in_flight},
                   {"delayed", queue.counts.delayed},
                   {"sent", queue.activity.sent},
                   {"received", queue.activity.received},
                   {"deleted", queue.activity.deleted},
                   {"oldest", nullptr},
                   {"fifo", queue.fifo},
                   {"groups", queue.groups},
                   {"noisyGroups", queue.noisy_groups},
                   {"deadLetter", nullptr},
                   {"sources", json::array(sources.names.begin(), sources.names.end())},
                   {"sourceCount", sources.count}};
  if (queue.oldest_age) one["oldest"] = queue.oldest_age->count();
  if (!queue.dead_letter_target.empty()) one["deadLetter"] = dead_letter_queue(queue);
  return one;
}

// Calls `use` with each queue of the view's account and region.
template <class Use>
void each_queue(const std::vector<ShardFigures>& shards, const QueueView& view, Use use) {
  for (const ShardFigures& shard : shards)
    for (const QueueFigures& queue : shard.queues)
      if (queue.queue.account == view.account && queue.queue.region == view.region) use(queue);
}

using DeadLetterQueues = std::unordered_set<std::string_view>;

bool is_chosen(const QueueFigures& queue, const QueueView& view, const DeadLetterQueues& dead) {
  const std::string& name = queue.queue.name;
  switch (view.choice) {
    case QueueChoice::kAll:
      return name.find(view.filter) != std::string::npos;
    case QueueChoice::kOne:
      return name == view.filter;
    case QueueChoice::kDeadLetterQueues:
      return dead.contains(name) && name.find(view.filter) != std::string::npos;
  }
  return false;
}

}  // namespace

QueueOrder queue_order(std::string_view name) {
  const auto found =
      std::ranges::find(kOrders, name, [](const auto& order) { return order.first; });
  return found == kOrders.end() ? QueueOrder::kName : found->second;
}

QueueChoice queue_choice(std::string_view name) {
  if (name == "queue") return QueueChoice::kOne;
  return name == "dead-letters" ? QueueChoice::kDeadLetterQueues : QueueChoice::kAll;
}

std::string render_event(const std::vector<ShardFigures>& shards, const QueueView& view) {
  struct Shown {
    const QueueFigures* queue;
    std::uint64_t key;
  };
  DeadLetterQueues dead;
  if (view.choice == QueueChoice::kDeadLetterQueues)
    each_queue(shards, view,
               [&](const QueueFigures& queue) { dead.insert(dead_letter_queue(queue)); });
  std::vector<Shown> shown;
  std::size_t total = 0;
  each_queue(shards, view, [&](const QueueFigures& queue) {
    ++total;
    if (is_chosen(queue, view, dead)) shown.push_back({&queue, sort_key(queue, view.order)});
  });
  const std::size_t most = std::min(shown.size(), kQueuesShown);
  std::ranges::partial_sort(
      shown, shown.begin() + static_cast<std::ptrdiff_t>(most), [](const Shown& a, const Shown& b) {
        return a.key != b.key ? a.key > b.key : a.queue->queue.name < b.queue->queue.name;
      });
  std::unordered_map<std::string_view, Sources> sources;
  for (std::size_t i = 0; i < most; ++i) sources.try_emplace(shown[i].queue->queue.name);
  each_queue(shards, view, [&](const QueueFigures& queue) {
    const auto found = sources.find(dead_letter_queue(queue));
    if (found != sources.end()) found->second.add(queue.queue.name);
  });
  json::array queues;
  for (std::size_t i = 0; i < most; ++i)
    queues.push_back(describe(*shown[i].queue, sources.at(shown[i].queue->queue.name)));
  const json::object event{
      {"queues", std::move(queues)}, {"matching", shown.size()}, {"total", total}};
  return fmt::format("data: {}\n\n", json::serialize(event));
}

std::string with_time(std::string_view event, Instant now) {
  CHECK(event.starts_with(kEventBegin), "an event is an object on a line of data");
  return fmt::format("{}\"now\":{},{}", kEventBegin, to_millis(now),
                     event.substr(kEventBegin.size()));
}

QueueEvents::QueueEvents(broker::Broker& broker, broker::Background& background, os::Time& time,
                         std::vector<std::unique_ptr<ReactorLoop>>& loops)
    : broker_(broker), background_(background), time_(time), loops_(loops) {}

QueueEvents::Slot::~Slot() {
  if (!counts_) return;
  const std::lock_guard lock(counts_->mutex);
  const auto found = counts_->by_account.find(account_);
  if (--found->second == 0) counts_->by_account.erase(found);
}

std::optional<QueueEvents::Slot> QueueEvents::take_slot(const std::string& account) {
  const std::lock_guard lock(counts_->mutex);
  const auto found = counts_->by_account.try_emplace(account, 0).first;
  if (found->second >= kStreamsPerAccountMax) return std::nullopt;
  ++found->second;
  return Slot(counts_, account);
}

bool QueueEvents::watch(net::Exchange& exchange, QueueView view, MayGoOn may_go_on) {
  auto slot = take_slot(view.account);
  if (!slot) return false;
  ReactorLoop& loop = *loops_[exchange.reactor().index()];
  net::HttpResponse begin(200, std::string(kFirstWords));
  begin.add_plain_header("Content-Type", "text/event-stream");
  begin.add_plain_header("Cache-Control", "no-store");
  begin.add_plain_header("X-Accel-Buffering", "no");  // A proxy would keep events back.
  auto watcher = std::make_shared<Watcher>(Watcher{.loop = loop,
                                                   .view = std::move(view),
                                                   .may_go_on = std::move(may_go_on),
                                                   .stream = exchange.stream(std::move(begin)),
                                                   .slot = std::move(slot),
                                                   .seen = 0,
                                                   .spoken = Clock::now()});
  watcher->stream->on_gone([this, weak = std::weak_ptr(watcher)] {
    const WatcherPointer gone = weak.lock();
    if (!gone) return;
    end(*gone);
    home().post([this, gone] { watchers_.erase(gone); });
  });
  home().post([this, watcher = std::move(watcher)]() mutable { add(std::move(watcher)); });
  return true;
}

// On the first loop.

void QueueEvents::add(WatcherPointer watcher) {
  watchers_.insert(watcher);
  deliver({std::move(watcher)});
  step();
}

void QueueEvents::step() {
  if (working_) {
    again_ = true;
    return;
  }
  if (watchers_.empty()) {
    replace_figures(nullptr);
    events_.clear();
    return;
  }
  if (!figures_ || Clock::now() >= due_) {
    end_refused();
    return collect();
  }
  std::set<QueueView> missing;
  for (const WatcherPointer& watcher : watchers_)
    if (!events_.contains(watcher->view)) missing.insert(watcher->view);
  if (!missing.empty()) render(std::move(missing), false);
}

void QueueEvents::end_refused() {
  std::erase_if(watchers_, [](const WatcherPointer& watcher) {
    if (watcher->may_go_on()) return false;
    watcher->loop.post([watcher] { end(*watcher); });
    return true;
  });
}

void QueueEvents::collect() {
  working_ = true;
  broker_.collect(
      home(), [](const engine::Queue&, Instant) { return true; },
      [this](std::vector<ShardFigures> shards) {
        replace_figures(std::make_shared<const std::vector<ShardFigures>>(std::move(shards)));
        std::set<QueueView> views;
        for (const WatcherPointer& watcher : watchers_) views.insert(watcher->view);
        render(std::move(views), true);
      });
}

// Figures of ten thousand queues take a loop a millisecond to free.
void QueueEvents::replace_figures(Figures figures) {
  figures.swap(figures_);
  if (figures) background_.run(broker::Work::kReport, [old = std::move(figures)] {});
}

void QueueEvents::render(std::set<QueueView> views, bool all) {
  working_ = true;
  background_.run(broker::Work::kReport,
                  [this, figures = figures_, views = std::move(views), all]() mutable {
                    const Clock::time_point began = Clock::now();
                    std::map<QueueView, std::string> events;
                    for (const QueueView& view : views)
                      events.emplace(view, render_event(*figures, view));
                    figures.reset();
                    home().post([this, events = std::move(events), took = Clock::now() - began,
                                 all]() mutable { publish(std::move(events), took, all); });
                  });
}

void QueueEvents::publish(std::map<QueueView, std::string> events, Clock::duration took, bool all) {
  std::map<QueueView, Event> last = std::exchange(events_, {});
  if (!all) events_ = last;
  for (auto& [view, text] : events) {
    const auto known = last.find(view);
    events_[view] = known != last.end() && known->second->text == text
                        ? known->second
                        : std::make_shared<const Numbered>(std::move(text), ++last_number_);
  }
  // A key may have changed while the figures were collected.
  end_refused();
  deliver(watchers_);
  working_ = false;
  if (all) due_ = Clock::now() + std::max<Clock::duration>(kInterval, 4 * took);
  if (!alarm_) alarm_ = home().make_alarm([this] { step(); });
  alarm_->set(std::chrono::ceil<Duration>(due_ - Clock::now()));
  if (std::exchange(again_, false)) step();
}

// One task per loop, however many streams it has.
void QueueEvents::deliver(const std::set<WatcherPointer>& watchers) {
  std::map<ReactorLoop*, std::vector<std::pair<WatcherPointer, Event>>> by_loop;
  for (const WatcherPointer& watcher : watchers) {
    const auto event = events_.find(watcher->view);
    if (event != events_.end()) by_loop[&watcher->loop].emplace_back(watcher, event->second);
  }
  for (auto& [loop, deliveries] : by_loop)
    loop->post([this, deliveries = std::move(deliveries)] {
      for (const auto& [watcher, event] : deliveries) send(*watcher, event);
    });
}

// On the watcher's loop.

void QueueEvents::send(Watcher& watcher, const Event& event) {
  if (!watcher.stream) return;
  const Clock::time_point now = Clock::now();
  const Instant time = time_.read().now;
  // The client counts on from what it was told, at the pace of a steady clock.
  const auto ahead = std::chrono::round<Duration>(time.time_since_epoch() - now.time_since_epoch());
  const bool was_moved = std::chrono::abs(ahead - watcher.told) > kTimeError;
  if (watcher.seen != event->number || was_moved) {
    if (!watcher.stream->send(with_time(event->text, time))) return;
    watcher.seen = event->number;
    watcher.spoken = now;
    watcher.told = ahead;
  } else if (now - watcher.spoken >= kSilenceMax && watcher.stream->send(kComment)) {
    watcher.spoken = now;
  }
}

void QueueEvents::end(Watcher& watcher) {
  watcher.stream.reset();
  watcher.slot.reset();
}

}  // namespace stanchion::service

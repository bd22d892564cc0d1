#include "console/queue_events.h"

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

namespace stanchion::console {
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
                         std::vector<std::unique_ptr<service::ReactorLoop>>& loops)
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
  service::ReactorLoop& loop = *loops_[exchange.reactor().index()];
  net::HttpResponse begin(200, std::string(kFirstWords));
  begin.add_plain_header("Content-Type", "text/event-stream");
  begin.add_plain_header("Cache-Control", "no-store");
  begin.add_plain_header("X-Accel-Buffering", "no");  // A proxy would keep events back.
  auto watcher = std::make_shared<Watcher>(Watcher{.loop = loop,
                                                   .view = std::move(view),
                                                   .may_go_on = std::move(may_go_on),
                                                   .stream = exchange.stream(std::move(begin)),
                                                   .slot = std::move(slot),
                                                   .seen = {},
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
  watchers_.insert(std::move(watcher));
  step();
}

void QueueEvents::step() {
  if (working_ || watchers_.empty()) return;
  const Clock::time_point now = Clock::now();
  Round round{.views = {}, .all = now >= due_, .began = now};
  bool has_new = false;
  for (const WatcherPointer& watcher : watchers_) {
    has_new = has_new || watcher->is_new;
    if (round.all || watcher->is_new) round.views.insert(watcher->view);
  }
  if (round.all || (has_new && now >= due_of_new_)) {
    for (const WatcherPointer& watcher : watchers_) watcher->is_new = false;
    working_ = true;
    return go_on(std::move(round));
  }
  if (!alarm_) alarm_ = home().make_alarm([this] { step(); });
  const Clock::time_point next = has_new ? std::min(due_, due_of_new_) : due_;
  alarm_->set(std::chrono::ceil<Duration>(next - now));
}

// To the views of the next account and region.
void QueueEvents::go_on(Round round) {
  if (round.views.empty()) return finish(round);
  const auto is_elsewhere = [first = *round.views.begin()](const QueueView& view) {
    return view.account != first.account || view.region != first.region;
  };
  const auto end = std::ranges::find_if(round.views, is_elsewhere);
  Views views;
  while (round.views.begin() != end) views.insert(round.views.extract(round.views.begin()));
  const QueueView& any = *views.begin();
  broker_.collect(
      home(),
      {.queues =
           [account = any.account, region = any.region](const engine::Queue& queue, Instant) {
             return queue.ref.account == account && queue.ref.region == region;
           },
       .purpose = broker::Purpose::kConsole},
      [this, views = std::move(views), round = std::move(round)](broker::Figures figures) mutable {
        render(std::move(figures), std::move(views), std::move(round));
      });
}

void QueueEvents::finish(const Round& round) {
  working_ = false;
  const Clock::time_point now = Clock::now();
  // Figures are collected for those that are new; the loops' time for it is in this.
  due_of_new_ = now + 4 * (now - round.began);
  if (round.all) due_ = now + std::max<Clock::duration>(kInterval, 4 * round.took);
  step();
}

// Figures of ten thousand queues take a loop a millisecond to free: they are in the background,
// except while events are handed on.
void QueueEvents::render(broker::Figures figures, Views views, Round round) {
  background_.run(broker::Work::kReport,
                  [this, figures = std::move(figures), views = std::move(views),
                   round = std::move(round)]() mutable {
                    const Clock::time_point began = Clock::now();
                    Events events;
                    std::size_t bytes = 0;
                    while (!views.empty() && bytes < kEventBytesMax) {
                      std::string text = render_event(figures.shards, *views.begin());
                      bytes += text.size();
                      const Hash128 hash = xxh3_128(text);
                      events.emplace(std::move(views.extract(views.begin()).value()),
                                     std::make_shared<const Hashed>(std::move(text), hash));
                    }
                    if (views.empty()) figures = {};
                    round.took += Clock::now() - began;
                    home().post([this, events = std::move(events), figures = std::move(figures),
                                 views = std::move(views), round = std::move(round)]() mutable {
                      const Events made = std::move(events);
                      publish(made, [this, figures = std::move(figures), views = std::move(views),
                                     round = std::move(round)]() mutable {
                        if (views.empty()) return go_on(std::move(round));
                        render(std::move(figures), std::move(views), std::move(round));
                      });
                    });
                  });
}

// `then` is run when the streams' loops are done with the events. One task per loop, however many
// streams it has.
void QueueEvents::publish(const Events& events, broker::Task then) {
  // A key may have changed while the figures were collected.
  end_refused(events);
  using Deliveries = std::vector<std::pair<WatcherPointer, Event>>;
  std::map<service::ReactorLoop*, Deliveries> by_loop;
  for (const WatcherPointer& watcher : watchers_)
    if (const auto event = events.find(watcher->view); event != events.end())
      by_loop[&watcher->loop].emplace_back(watcher, event->second);
  if (by_loop.empty()) return home().post(std::move(then));
  struct Countdown {
    std::size_t left;
    broker::Task then;
  };
  const auto countdown = std::make_shared<Countdown>(by_loop.size(), std::move(then));
  for (auto& [loop, deliveries] : by_loop)
    loop->post([this, countdown, deliveries = std::move(deliveries)]() mutable {
      for (const auto& [watcher, event] : deliveries) send(*watcher, event);
      deliveries.clear();
      home().post([countdown] {
        if (--countdown->left == 0) countdown->then();
      });
    });
}

void QueueEvents::end_refused(const Events& events) {
  std::erase_if(watchers_, [&](const WatcherPointer& watcher) {
    if (!events.contains(watcher->view) || watcher->may_go_on()) return false;
    watcher->loop.post([watcher] { end(*watcher); });
    return true;
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
  if (watcher.seen != event->hash || was_moved) {
    if (!watcher.stream->send(with_time(event->text, time))) return;
    watcher.seen = event->hash;
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

}  // namespace stanchion::console

// The live figures of queues as streams of server-sent events: what GET /console/events answers.
//
//   once a second, while anybody watches:
//   every shard's loop, a few queues at a time ─▶ a thread: one event per view ─▶ the streams
//
// A view is what a browser asks for; all who ask for the same share one event. watch() is called on
// the reactor of its exchange, a stream is used there, and everything else happens on the first
// loop and in the background.
//
//   QE1  At most kStreamsPerAccountMax streams of an account are open, whatever others have.
//   QE2  A stream gets the newest event that differs from the last one it got. An event that its
//        client has no room for is dropped, and the next one is tried. Each tells the server's
//        time when it is sent; if that was moved since, the event is sent again.
//   QE3  Nothing is collected while nobody watches.
//   QE4  Making events takes at most a fifth of one processor, whatever is watched.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/background.h"
#include "broker/broker.h"
#include "broker/figures.h"
#include "net/http_server.h"
#include "os/timekeeper.h"
#include "service/reactor_loop.h"

namespace stanchion::service {

// By name, or by a figure, the largest first.
enum class QueueOrder : std::uint8_t {
  kName,
  kVisible,
  kInFlight,
  kDelayed,
  kOldest,
  kSent,
  kReceived,
  kDeleted
};

// Those with the filter in their name, the one whose name it is, or those of the first that are
// dead-letter queues.
enum class QueueChoice : std::uint8_t { kAll, kOne, kDeadLetterQueues };

// As the console names them; what is not known is by name, and all of them.
QueueOrder queue_order(std::string_view name);
QueueChoice queue_choice(std::string_view name);

// Which queues are shown, and how.
struct QueueView {
  std::string account;
  std::string region;
  std::string filter;
  QueueOrder order = QueueOrder::kName;
  QueueChoice choice = QueueChoice::kAll;

  friend auto operator<=>(const QueueView&, const QueueView&) = default;
};

// The event of a view: JSON on a line of data. docs/operations.md describes it.
std::string render_event(const std::vector<broker::ShardFigures>& shards, const QueueView& view);

// The same event with the time at which it is sent. The time is not part of it before: every event
// would differ from the last one.
std::string with_time(std::string_view event, Instant now);

class QueueEvents {
 public:
  static constexpr std::size_t kStreamsPerAccountMax = 200;

  // Everything must outlive it; the background must end before it.
  QueueEvents(broker::Broker& broker, broker::Background& background, os::Time& time,
              std::vector<std::unique_ptr<ReactorLoop>>& loops);

  // Whether a stream may go on; asked before each event and about once a second, on the first loop.
  using MayGoOn = std::function<bool()>;

  // Answers with a stream of events. False: there are too many, and the exchange is as it was.
  [[nodiscard]] bool watch(net::Exchange& exchange, QueueView view, MayGoOn may_go_on);

 private:
  using Clock = std::chrono::steady_clock;
  struct Numbered {
    std::string text;
    std::uint64_t number;  // No other event has it.
  };
  using Event = std::shared_ptr<const Numbered>;
  using Figures = std::shared_ptr<const std::vector<broker::ShardFigures>>;

  // How many streams each account has. Any thread.
  struct Counts {
    std::mutex mutex;
    std::map<std::string, std::size_t> by_account;  // None of them 0. Guarded by mutex.
  };

  // One of the streams that may be open. Counts itself as long as it lives.
  class Slot {
   public:
    Slot(std::shared_ptr<Counts> counts, std::string account)
        : counts_(std::move(counts)), account_(std::move(account)) {}
    ~Slot();
    Slot(Slot&&) = default;
    Slot& operator=(Slot&&) = delete;

   private:
    std::shared_ptr<Counts> counts_;
    std::string account_;
  };

  struct Watcher {
    ReactorLoop& loop;
    const QueueView view;
    const MayGoOn may_go_on;

    // Used on its loop; none once the stream has ended.
    std::optional<net::ResponseStream> stream;
    std::optional<Slot> slot;
    std::uint64_t seen = 0;      // The number of the last event it got.
    Clock::time_point spoken{};  // When anything was last sent.
    Duration told{};             // How far time was ahead of the steady clock at the last event.
  };
  using WatcherPointer = std::shared_ptr<Watcher>;

  std::optional<Slot> take_slot(const std::string& account);
  ReactorLoop& home() { return *loops_.front(); }

  // On the first loop.
  void add(WatcherPointer watcher);
  void step();
  void end_refused();
  void collect();
  void replace_figures(Figures figures);
  void render(std::set<QueueView> views, bool all);
  void publish(std::map<QueueView, std::string> events, Clock::duration took, bool all);
  void deliver(const std::set<WatcherPointer>& watchers);

  // On the watcher's loop.
  void send(Watcher& watcher, const Event& event);
  static void end(Watcher& watcher);

  broker::Broker& broker_;
  broker::Background& background_;
  os::Time& time_;
  std::vector<std::unique_ptr<ReactorLoop>>& loops_;
  // Shared with slots, which tasks that are never run may outlive us with.
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();

  // On the first loop.
  std::set<WatcherPointer> watchers_;
  std::map<QueueView, Event> events_;  // Made of figures_.
  std::uint64_t last_number_ = 0;
  Figures figures_;
  Clock::time_point due_{};  // When the figures are to be collected again.
  bool working_ = false;     // Figures are being collected or events made.
  bool again_ = false;       // Somebody came meanwhile.
  std::unique_ptr<broker::Alarm> alarm_;
};

}  // namespace stanchion::service

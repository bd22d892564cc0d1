// The live figures of queues as streams of server-sent events: what GET /console/events answers.
//
//   once a second, while anybody watches, for one account and region after the other:
//   every shard's loop, a few queues at a time ─▶ a thread: events of some views ─▶ the streams
//                                                     ▲       these are handed on       │
//                                                     └─────────────────────────────────┘
//
// A view is what a browser asks for; all who ask for the same share one event. watch() is called on
// the reactor of its exchange, a stream is used there, and everything else happens on the first
// loop and in the background.
//
//   QE1  At most kStreamsPerAccountMax streams of an account are open, whatever others have.
//   QE2  A stream gets the newest event that differs from the last one it got. An event that its
//        client has no room for is dropped, and the next one is tried. Each tells the server's
//        time when it is sent; if that was moved since, the event is sent again.
//   QE3  Nothing is collected while nobody watches, and no figures are kept between two rounds.
//   QE4  Making events takes at most a fifth of one processor, whatever is watched. So does what
//        streams cause that come and go.
//   QE5  However many views there are, at most kEventBytesMax of events exist, and one more: no more
//        are made until the streams' loops have handed those on.
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

#include "base/digest.h"
#include "broker/background.h"
#include "broker/broker.h"
#include "broker/figures.h"
#include "net/http_server.h"
#include "os/timekeeper.h"
#include "service/reactor_loop.h"

namespace stanchion::console {

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
  static constexpr std::size_t kEventBytesMax = std::size_t{1} << 20;

  // Everything must outlive it; the background must end before it.
  QueueEvents(broker::Broker& broker, broker::Background& background, os::Time& time,
              std::vector<std::unique_ptr<service::ReactorLoop>>& loops);

  // Whether a stream may go on; asked before each event, so about once a second, on the first loop.
  using MayGoOn = std::function<bool()>;

  // Answers with a stream of events. False: there are too many, and the exchange is as it was.
  [[nodiscard]] bool watch(net::Exchange& exchange, QueueView view, MayGoOn may_go_on);

 private:
  using Clock = std::chrono::steady_clock;
  // With a hash of the text, by which a stream knows whether it got that event last.
  struct Hashed {
    std::string text;
    Hash128 hash;
  };
  using Event = std::shared_ptr<const Hashed>;
  using Events = std::map<QueueView, Event>;
  using Views = std::set<QueueView>;

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
    service::ReactorLoop& loop;
    const QueueView view;
    const MayGoOn may_go_on;

    // Used on its loop; none once the stream has ended.
    std::optional<net::ResponseStream> stream;
    std::optional<Slot> slot;
    std::optional<Hash128> seen;  // Of the last event it got.
    Clock::time_point spoken{};   // When anything was last sent.
    Duration told{};              // How far time was ahead of the steady clock at the last event.

    bool is_new = true;  // No event was made for it. Used on the first loop.
  };
  using WatcherPointer = std::shared_ptr<Watcher>;

  std::optional<Slot> take_slot(const std::string& account);
  service::ReactorLoop& home() { return *loops_.front(); }

  // One pass over the views of all watchers, or of those that are new.
  struct Round {
    Views views;  // For which no event was made yet.
    bool all = true;
    Clock::time_point began{};
    Clock::duration took{};  // Of making events.
  };

  // On the first loop.
  void add(WatcherPointer watcher);
  void step();
  void go_on(Round round);
  void finish(const Round& round);
  void render(broker::Figures figures, Views views, Round round);
  void publish(const Events& events, broker::Task then);
  void end_refused(const Events& events);

  // On the watcher's loop.
  void send(Watcher& watcher, const Event& event);
  static void end(Watcher& watcher);

  broker::Broker& broker_;
  broker::Background& background_;
  os::Time& time_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  // Shared with slots, which tasks that are never run may outlive us with.
  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();

  // On the first loop.
  std::set<WatcherPointer> watchers_;
  Clock::time_point due_{};         // When the next round of all views begins …
  Clock::time_point due_of_new_{};  // … and no earlier, one of those that are new.
  bool working_ = false;            // A round is under way.
  std::unique_ptr<broker::Alarm> alarm_;
};

}  // namespace stanchion::console

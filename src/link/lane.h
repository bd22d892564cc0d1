// One connection between two nodes, on one reactor.
//
//   dialled:  connecting ─▶ greeting (hello sent) ─▶ ready (answered) ─▶ open ─▶ closed
//   accepted:               greeting (hello due)  ─▶ ready            ─▶ open ─▶ closed
//                                                 └▶ given away (a thread copies a store)
//
//   LN1  Nothing is read while the lane is ready: frames wait until the whole session is made.
//   LN2  Frames are taken only while the session is whole, checked under `delivery`: who has set
//        Session::broken and held that mutex knows that none is taken any more.
//
// Reactor thread only, except what is said otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/transport.h"
#include "link/hello.h"
#include "net/client_connection.h"
#include "net/output_queue.h"
#include "net/poller.h"
#include "net/reactor.h"
#include "net/stream.h"

namespace stanchion::link {

class Lane;
class LinkTls;
class ReactorLanes;

// All lanes between two nodes. Any thread; the lanes do not change.
struct Session {
  fleet::NodeName node;
  std::uint64_t id = 0;
  std::uint64_t process = 0;  // Of the other node.
  std::vector<std::shared_ptr<Lane>> lanes;
  std::vector<std::size_t> lane_of_reactor;  // By which lane each reactor sends.
  net::SteadyTime made{};
  std::atomic<bool> broken{false};
  std::atomic<std::size_t> queued{0};  // Bytes that wait to be written.
};

// What lanes tell; called on their reactors.
class LaneEvents {
 public:
  virtual ~LaneEvents() = default;
  virtual void hello(const std::shared_ptr<Lane>& lane, const Hello& hello) = 0;
  virtual void answered(const std::shared_ptr<Lane>& lane, const HelloAnswer& answer) = 0;
  virtual void take(const fleet::NodeName& from, fleet::Frame frame) = 0;
  // Once per lane, unless close() was called.
  virtual void closed(const std::shared_ptr<Lane>& lane, const std::string& why) = 0;
};

class Lane final : public net::Poller::Watcher, public std::enable_shared_from_this<Lane> {
 public:
  enum class Phase { kConnecting, kGreeting, kReady, kOpen, kGivenAway, kClosed };

  Lane(ReactorLanes& lanes, net::Stream stream, std::string peer);

  // Of a connection that was begun.
  void dial(Hello hello);
  // Of one that was accepted.
  void expect_hello();

  // The session is made: writes `first`, then frames.
  void open(std::shared_ptr<Session> session, std::string_view first);
  // Frames, complete, that wait until the lane is open. They are counted in Session::queued.
  void push(std::string_view bytes);
  void push(std::string&& bytes);
  // Says why, and closes.
  void refuse(const HelloAnswer& answer);
  // From here on a thread has the stream, until close().
  net::Stream& give_away();
  void close();

  void on_ready(bool for_reading, bool ended) override;
  void on_tick(net::SteadyTime now);

  // Any thread, also when the lane has left its reactor.
  net::Reactor& reactor() { return reactor_; }
  const std::string& peer() const { return peer_; }  // The address, for logs.
  // Of a dialled lane, and of an accepted one from its hello on.
  const Hello& greeting() const { return greeting_; }
  bool dialled() const { return dialled_; }
  std::mutex delivery;  // LN2

  // On the thread that makes and breaks sessions.
  std::shared_ptr<Session> session;

 private:
  void advance();
  bool finish_connect();
  void flush();
  void flush_later();
  void read();
  bool take_input();
  bool take_greeting();
  bool take_frames();
  bool deliver(std::vector<fleet::Frame> frames);
  std::string failure() const;  // Of reading or writing.
  void break_off(const std::string& why);
  void consumed(std::size_t bytes);

  ReactorLanes& owner_;  // Until the lane is closed.
  net::Reactor& reactor_;
  net::Stream stream_;
  const std::string peer_;
  Phase phase_ = Phase::kGreeting;
  bool dialled_ = false;
  bool readable_ = true;
  bool flushing_ = false;   // A flush is scheduled.
  bool advancing_ = false;  // A further read is scheduled.
  Hello greeting_;
  std::shared_ptr<Session> open_session_;
  net::OutputQueue out_;
  std::string early_;  // Frames that came before the lane was open.
  std::string input_;
  net::SteadyTime deadline_{};  // Until it is open.
  net::SteadyTime heard_{};
  net::SteadyTime sent_{};
};

// The lanes of one reactor. Outlived by nothing that calls it.
class ReactorLanes {
 public:
  ReactorLanes(net::Reactor& reactor, LaneEvents& events, const LinkTls* tls);

  void start();
  void stop();

  void dial(const net::ClientAddress& address, const std::string& peer, const Hello& hello);
  void accept(os::Fd fd, const std::string& peer);

  net::Reactor& reactor() { return reactor_; }
  LaneEvents& events() { return events_; }
  const LinkTls* tls() const { return tls_; }
  std::span<char> scratch() { return {scratch_.get(), kScratchSize}; }
  void remove(Lane& lane);

 private:
  static constexpr std::size_t kScratchSize = 256 * 1024;

  void add(const std::shared_ptr<Lane>& lane, int fd);
  void on_tick();

  net::Reactor& reactor_;
  LaneEvents& events_;
  const LinkTls* const tls_;
  std::shared_ptr<net::Poller> poller_;
  net::Timer timer_;
  std::unique_ptr<char[]> scratch_;
  std::vector<std::shared_ptr<Lane>> lanes_;
  std::vector<std::shared_ptr<Lane>> closed_;  // Kept until no event can refer to them.
  bool stopped_ = false;
};

}  // namespace stanchion::link

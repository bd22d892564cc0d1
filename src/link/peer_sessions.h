// Makes and breaks the sessions of one node with the others: dials, accepts, greets, notices what
// is broken and dials again. TcpTransport is its face.
//
// What is decided is decided on the home reactor, the first of the pool; lanes are on all of them.
// Only the map of whole sessions is used by all threads.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "link/lane.h"
#include "link/link_tls.h"
#include "link/tcp_transport.h"
#include "net/listen_socket.h"

namespace stanchion::link {

// Lines of one kind are logged at most once in a while. Any thread.
class SparseLog {
 public:
  void start(std::function<void(const std::string&)> log);
  void stop();
  void say(const std::string& kind, const std::string& line);

 private:
  std::mutex mutex_;
  std::function<void(const std::string&)> log_;
  std::map<std::string, net::SteadyTime> said_;
};

class PeerSessions final : public LaneEvents, public std::enable_shared_from_this<PeerSessions> {
 public:
  PeerSessions(net::ReactorPool& pool, LinkOptions options, std::unique_ptr<LinkTls> tls);
  ~PeerSessions() override;

  Status listen();
  void start(LinkEvents events);
  void stop();

  std::uint16_t port() const { return port_; }
  void set_peers(const std::map<fleet::NodeName, std::string>& addresses);
  bool send(const fleet::NodeName& to, const fleet::Frame& frame);
  fleet::Links links();

  Hello my_hello() const;
  const LinkTls* tls() const { return tls_.get(); }

  void hello(const std::shared_ptr<Lane>& lane, const Hello& hello) override;
  void answered(const std::shared_ptr<Lane>& lane, const HelloAnswer& answer) override;
  void take(const fleet::NodeName& from, fleet::Frame frame) override;
  void closed(const std::shared_ptr<Lane>& lane, const std::string& why) override;

 private:
  // The lanes of a session that is being made.
  struct Attempt {
    std::uint64_t id = 0;
    std::uint64_t process = 0;
    std::vector<std::shared_ptr<Lane>> lanes;
    std::size_t arrived = 0;
  };
  struct Peer {
    std::string address;
    std::unique_ptr<Attempt> dialling;
    bool resolving = false;
    net::SteadyTime dial_at{};
    std::chrono::milliseconds backoff{};
    std::size_t tries = 0;
  };
  struct Copying {
    std::thread thread;
    int fd = -1;  // Open until `done`, which is set and read under the mutex.
    std::shared_ptr<bool> done;
  };

  net::Reactor& home() { return pool_[0]; }
  void arm_accept(net::Descriptor& socket);
  void accept_some(net::Descriptor& socket);
  void on_tick();
  void dial(const fleet::NodeName& name, Peer& peer);
  void dial_at(const fleet::NodeName& name, const net::ClientAddress& address);
  void dial_later(Peer& peer, bool lasted);
  void note_failure(const fleet::NodeName& name, const std::string& why);
  void lane_arrived(const std::shared_ptr<Lane>& lane, const Hello& hello);
  void lane_answered(const std::shared_ptr<Lane>& lane, const HelloAnswer& answer);
  void lane_closed(const std::shared_ptr<Lane>& lane, const std::string& why);
  bool add(Attempt& attempt, const std::shared_ptr<Lane>& lane);
  void abandon(Attempt& attempt);
  void make(const fleet::NodeName& node, Attempt& attempt, bool dialled);
  void break_session(const std::shared_ptr<Session>& session, const std::string& why);
  std::shared_ptr<Session> find(const fleet::NodeName& node);
  void start_copy(const std::shared_ptr<Lane>& lane, ShardIndex shard);
  void serve_copy(net::Stream& stream, ShardIndex shard);
  void close_later(const std::shared_ptr<Lane>& lane);

  net::ReactorPool& pool_;
  const LinkOptions options_;
  const std::unique_ptr<LinkTls> tls_;
  LinkEvents events_;
  SparseLog log_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopped_{false};
  std::vector<std::unique_ptr<ReactorLanes>> lanes_;  // By reactor.

  // Whole sessions, and why there is none with other peers.
  std::mutex mutex_;
  std::map<fleet::NodeName, std::shared_ptr<Session>> sessions_;
  std::map<fleet::NodeName, std::string> failures_;

  std::mutex copies_mutex_;
  std::vector<Copying> copies_;

  // On the home reactor.
  std::vector<os::Fd> listening_;
  bool reachable_ = false;  // From other machines: not only loopback addresses are listened on.
  std::vector<std::unique_ptr<net::Descriptor>> sockets_;
  std::vector<net::Descriptor*> resting_;  // Those of them that accept again at the next tick.
  std::unique_ptr<net::Timer> timer_;
  std::unique_ptr<boost::asio::ip::tcp::resolver> resolver_;
  std::map<fleet::NodeName, Peer> peers_;
  std::map<fleet::NodeName, std::unique_ptr<Attempt>> arriving_;
  std::size_t next_reactor_ = 0;
};

}  // namespace stanchion::link

#include "link/peer_sessions.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <latch>
#include <random>
#include <utility>

#include "base/check.h"
#include "fleet/limits.h"
#include "link/frame_codec.h"
#include "link/link_address.h"
#include "link/store_copy.h"
#include "os/silence.h"

namespace stanchion::link {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLogAgainAfter{5'000};
constexpr std::size_t kLogKindsMax = 1'000;
constexpr milliseconds kTick{50};
constexpr milliseconds kBackoffMin{50}, kBackoffMax{2'000};
// A session that lasted this long was no accident.
constexpr milliseconds kLasted{5'000};
constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kCopiesMax = 4;
constexpr std::size_t kOwnPieceMin = net::OutputQueue::kOwnPieceMin;

net::SteadyTime now() {
  return std::chrono::steady_clock::now();
}

std::uint64_t draw() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

net::ClientAddress to_address(const boost::asio::ip::tcp::endpoint& endpoint) {
  net::ClientAddress address;
  std::memcpy(&address.storage, endpoint.data(), endpoint.size());
  address.size = static_cast<socklen_t>(endpoint.size());
  return address;
}

// By which lane a reactor sends: its own, if there is one, for then no other thread is woken.
std::size_t lane_for(const net::Reactor& reactor, std::size_t index,
                     const std::vector<std::shared_ptr<Lane>>& lanes) {
  const auto own = std::ranges::find_if(
      lanes, [&](const std::shared_ptr<Lane>& lane) { return &lane->reactor() == &reactor; });
  return own != lanes.end() ? static_cast<std::size_t>(own - lanes.begin()) : index % lanes.size();
}

}  // namespace

void SparseLog::start(std::function<void(const std::string&)> log) {
  const std::lock_guard lock(mutex_);
  log_ = std::move(log);
}

void SparseLog::stop() {
  const std::lock_guard lock(mutex_);
  log_ = nullptr;
}

void SparseLog::say(const std::string& kind, const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!log_) return;
  const net::SteadyTime time = now();
  if (said_.size() >= kLogKindsMax) said_.clear();
  const auto [last, first] = said_.try_emplace(kind, time);
  if (!first && time - last->second < kLogAgainAfter) return;
  last->second = time;
  log_(line);
}

PeerSessions::PeerSessions(net::ReactorPool& pool, LinkOptions options,
                           std::unique_ptr<LinkTls> tls)
    : pool_(pool), options_(std::move(options)), tls_(std::move(tls)) {}

PeerSessions::~PeerSessions() = default;

Status PeerSessions::listen() {
  auto sockets = net::listen_on_tcp(options_.host, options_.port, 1);
  if (!sockets) return std::unexpected(std::move(sockets).error());
  port_ = sockets->port();
  listening_ = sockets->take(0);
  for (const os::Fd& fd : listening_) {
    net::ClientAddress address;
    address.size = sizeof address.storage;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
    reachable_ = reachable_ || !is_loopback(address);
    if (tls_ || is_loopback(address)) continue;
    return fail(fmt::format(
        "the nodes of a fleet do not talk over {} without TLS: set a certificate, a key and an "
        "authority, or a file with a shared secret, or let all nodes listen on 127.0.0.1",
        to_text(address)));
  }
  return {};
}

void PeerSessions::start(LinkEvents events) {
  events_ = std::move(events);
  log_.start(events_.log);
  // Many a machine's own name is 127.0.1.1 in its /etc/hosts, and TLS is there for other machines.
  if (tls_ && !reachable_ && !net::numeric_address(options_.host, "0"))
    log_.say("listen",
             fmt::format("no other machine can reach this node: on this machine {} is a loopback "
                         "address. Change that in /etc/hosts, or give the address itself",
                         options_.host));
  std::latch started(static_cast<std::ptrdiff_t>(pool_.size()));
  lanes_.resize(pool_.size());
  for (std::size_t i = 0; i < pool_.size(); ++i)
    pool_[i].post([this, i, &started] {
      lanes_[i] = std::make_unique<ReactorLanes>(pool_[i], *this, tls_.get());
      lanes_[i]->start();
      started.count_down();
    });
  started.wait();
  home().post([self = shared_from_this()] {
    self->resolver_ = std::make_unique<boost::asio::ip::tcp::resolver>(self->home().context());
    self->timer_ =
        std::make_unique<net::Timer>(self->home(), [raw = self.get()] { raw->on_tick(); });
    self->timer_->arm(now() + kTick);
    for (os::Fd& fd : self->listening_)
      self->sockets_.push_back(
          std::make_unique<net::Descriptor>(self->home().context(), fd.release()));
    for (const auto& socket : self->sockets_) self->arm_accept(*socket);
  });
}

void PeerSessions::stop() {
  if (stopped_.exchange(true)) return;
  log_.stop();
  std::vector<Copying> copies;
  {
    const std::lock_guard lock(copies_mutex_);
    copies = std::exchange(copies_, {});
    for (const Copying& copy : copies)
      if (!*copy.done) ::shutdown(copy.fd, SHUT_RDWR);
  }
  for (Copying& copy : copies) copy.thread.join();
  if (!pool_.running() || lanes_.empty()) return;
  std::latch stopped(static_cast<std::ptrdiff_t>(pool_.size()));
  for (std::size_t i = 0; i < pool_.size(); ++i)
    pool_[i].post([this, i, &stopped] {
      if (i == 0) {
        resting_.clear();
        sockets_.clear();
        timer_.reset();
        resolver_.reset();
        peers_.clear();
        arriving_.clear();
        const std::lock_guard lock(mutex_);
        for (const auto& [node, session] : sessions_) {
          session->broken = true;
          // A session and its lanes know each other.
          for (const auto& lane : session->lanes) lane->session.reset();
        }
        sessions_.clear();
      }
      lanes_[i]->stop();
      lanes_[i].reset();
      stopped.count_down();
    });
  stopped.wait();
}

Hello PeerSessions::my_hello() const {
  Hello mine;
  mine.fleet = options_.fleet;
  mine.shards = options_.shards;
  mine.node = options_.node;
  mine.process = options_.process;
  return mine;
}

// Accepting.

void PeerSessions::arm_accept(net::Descriptor& socket) {
  socket.async_wait(net::Descriptor::wait_read,
                    [self = shared_from_this(), &socket](const boost::system::error_code& error) {
                      if (!error && !self->sockets_.empty()) self->accept_some(socket);
                    });
}

void PeerSessions::accept_some(net::Descriptor& socket) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    net::ClientAddress from;
    from.size = sizeof from.storage;
    os::Fd fd(::accept4(socket.native_handle(), reinterpret_cast<sockaddr*>(&from.storage),
                        &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EAGAIN) break;
      // The tick accepts again: at once it would fail for the same reason.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        log_.say("accept",
                 fmt::format("cannot accept a node's connection: {}", std::strerror(errno)));
        resting_.push_back(&socket);
        return;
      }
      continue;
    }
    const std::size_t reactor = next_reactor_++ % lanes_.size();
    pool_[reactor].post(
        [self = shared_from_this(), reactor, peer = to_text(from), fd = std::move(fd)]() mutable {
          if (self->lanes_[reactor]) self->lanes_[reactor]->accept(std::move(fd), peer);
        });
  }
  arm_accept(socket);
}

void PeerSessions::hello(const std::shared_ptr<Lane>& lane, const Hello& theirs) {
  if (const auto why = refuse_hello(my_hello(), theirs)) {
    log_.say("refused " + theirs.node,
             fmt::format("refuses the node \"{}\" at {}: {}", theirs.node, lane->peer(), *why));
    return lane->refuse({.process = options_.process, .text = *why});
  }
  if (theirs.purpose == Hello::Purpose::kCopy) return start_copy(lane, theirs.shard);
  home().post([self = shared_from_this(), lane, theirs] { self->lane_arrived(lane, theirs); });
}

void PeerSessions::lane_arrived(const std::shared_ptr<Lane>& lane, const Hello& hello) {
  if (stopped_) return;
  std::unique_ptr<Attempt>& attempt = arriving_[hello.node];
  if (attempt && attempt->id != hello.session) abandon(*std::exchange(attempt, nullptr));
  if (!attempt) {
    attempt = std::make_unique<Attempt>();
    attempt->id = hello.session;
    attempt->process = hello.process;
    attempt->lanes.resize(hello.lanes);
  }
  if (hello.lanes != attempt->lanes.size() || !add(*attempt, lane)) return close_later(lane);
  if (attempt->arrived < attempt->lanes.size()) return;
  const auto whole = std::move(attempt);
  arriving_.erase(hello.node);
  make(hello.node, *whole, false);
}

bool PeerSessions::add(Attempt& attempt, const std::shared_ptr<Lane>& lane) {
  std::shared_ptr<Lane>& place = attempt.lanes[lane->greeting().lane];
  if (place) return false;
  place = lane;
  ++attempt.arrived;
  return true;
}

void PeerSessions::close_later(const std::shared_ptr<Lane>& lane) {
  lane->reactor().post([lane] { lane->close(); });
}

void PeerSessions::abandon(Attempt& attempt) {
  for (const auto& lane : attempt.lanes)
    if (lane) close_later(lane);
}

// Dialling.

void PeerSessions::set_peers(const std::map<fleet::NodeName, std::string>& addresses) {
  home().post([self = shared_from_this(), addresses] {
    if (self->stopped_ || !self->timer_) return;
    for (auto it = self->peers_.begin(); it != self->peers_.end();) {
      const auto found = addresses.find(it->first);
      if (found != addresses.end() && found->second == it->second.address) {
        ++it;
        continue;
      }
      if (it->second.dialling) self->abandon(*it->second.dialling);
      if (const auto session = self->find(it->first))
        self->break_session(session, "it is elsewhere now, or gone");
      {
        const std::lock_guard lock(self->mutex_);
        self->failures_.erase(it->first);
      }
      it = self->peers_.erase(it);
    }
    for (const auto& [name, address] : addresses) {
      if (name == self->options_.node) continue;
      self->peers_[name].address = address;
    }
    self->on_tick();
  });
}

void PeerSessions::on_tick() {
  for (net::Descriptor* const socket : std::exchange(resting_, {})) arm_accept(*socket);
  const net::SteadyTime time = now();
  for (auto& [name, peer] : peers_) {
    if (name < options_.node || peer.dialling || peer.resolving || time < peer.dial_at) continue;
    if (!find(name)) dial(name, peer);
  }
  timer_->arm(time + kTick);
}

void PeerSessions::dial_later(Peer& peer, bool lasted) {
  peer.backoff = lasted ? kBackoffMin : std::clamp(2 * peer.backoff, kBackoffMin, kBackoffMax);
  peer.dial_at = now() + peer.backoff;
}

// Of a peer: one that is gone is of no interest.
void PeerSessions::note_failure(const fleet::NodeName& name, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (peers_.contains(name)) failures_.insert_or_assign(name, why);
}

void PeerSessions::dial(const fleet::NodeName& name, Peer& peer) {
  ++peer.tries;
  const auto parts = parse_address(peer.address);
  if (!parts) {
    log_.say("address " + name,
             fmt::format("the address of the node \"{}\" is no HOST:PORT: {}", name, peer.address));
    note_failure(name, peer.address + " is no HOST:PORT");
    return dial_later(peer, false);
  }
  if (const auto numeric = net::numeric_address(parts->host, parts->port))
    return dial_at(name, *numeric);
  peer.resolving = true;
  resolver_->async_resolve(
      parts->host, parts->port,
      [self = shared_from_this(), name, host = parts->host](
          const boost::system::error_code& error,
          const boost::asio::ip::tcp::resolver::results_type& found) {
        const auto known = self->peers_.find(name);
        if (self->stopped_ || known == self->peers_.end()) return;
        known->second.resolving = false;
        if (error || found.empty()) {
          self->log_.say("resolve " + name, fmt::format("cannot find the node \"{}\" at {}: {}",
                                                        name, host, error.message()));
          self->note_failure(name, fmt::format("cannot find {}: {}", host, error.message()));
          return self->dial_later(known->second, false);
        }
        const auto chosen = std::next(
            found.begin(), static_cast<std::ptrdiff_t>(known->second.tries % found.size()));
        self->dial_at(name, to_address(chosen->endpoint()));
      });
}

void PeerSessions::dial_at(const fleet::NodeName& name, const net::ClientAddress& address) {
  Peer& peer = peers_[name];
  if (!tls_ && !is_loopback(address)) {
    log_.say(
        "insecure " + name,
        fmt::format("the node \"{}\" at {} is not dialled: without TLS all nodes must be on "
                    "this machine. Set a certificate, a key and an authority, or a file with a "
                    "shared secret",
                    name, to_text(address)));
    note_failure(name, "without TLS all nodes must be on this machine");
    return dial_later(peer, false);
  }
  peer.dialling = std::make_unique<Attempt>();
  peer.dialling->id = draw();
  peer.dialling->lanes.resize(std::min<std::size_t>(pool_.size(), kLanesMax));
  Hello hello = my_hello();
  hello.to = name;
  hello.session = peer.dialling->id;
  hello.lanes = static_cast<std::uint32_t>(peer.dialling->lanes.size());
  for (std::uint32_t i = 0; i < hello.lanes; ++i) {
    hello.lane = i;
    pool_[i].post([self = shared_from_this(), i, address, hello] {
      if (self->lanes_[i]) self->lanes_[i]->dial(address, to_text(address), hello);
    });
  }
}

void PeerSessions::answered(const std::shared_ptr<Lane>& lane, const HelloAnswer& answer) {
  home().post([self = shared_from_this(), lane, answer] { self->lane_answered(lane, answer); });
}

void PeerSessions::lane_answered(const std::shared_ptr<Lane>& lane, const HelloAnswer& answer) {
  if (stopped_) return;
  const fleet::NodeName& node = lane->greeting().to;
  const auto peer = peers_.find(node);
  Attempt* const attempt = peer == peers_.end() ? nullptr : peer->second.dialling.get();
  if (attempt == nullptr || attempt->id != lane->greeting().session || !add(*attempt, lane))
    return close_later(lane);
  attempt->process = answer.process;
  if (attempt->arrived < attempt->lanes.size()) return;
  const auto whole = std::move(peer->second.dialling);
  make(node, *whole, true);
}

// Making and breaking.

std::shared_ptr<Session> PeerSessions::find(const fleet::NodeName& node) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(node);
  return found == sessions_.end() ? nullptr : found->second;
}

void PeerSessions::make(const fleet::NodeName& node, Attempt& attempt, bool dialled) {
  if (const auto old = find(node)) {
    if (old->process != attempt.process)
      log_.say("twice " + node,
               fmt::format("another process calls itself the node \"{}\": it was started again, or "
                           "it runs twice",
                           node));
    break_session(old, "it connected anew");
  }
  auto session = std::make_shared<Session>();
  session->node = node;
  session->id = attempt.id;
  session->process = attempt.process;
  session->lanes = std::move(attempt.lanes);
  session->made = now();
  for (std::size_t i = 0; i < pool_.size(); ++i)
    session->lane_of_reactor.push_back(lane_for(pool_[i], i, session->lanes));
  for (const auto& lane : session->lanes) lane->session = session;
  {
    const std::lock_guard lock(mutex_);
    sessions_[node] = session;
    failures_.erase(node);
  }
  events_.made(node);
  const HelloAnswer yes{.accepted = true, .version = kLinkVersion, .process = options_.process};
  const std::string first = dialled ? std::string() : encode(yes);
  for (const auto& lane : session->lanes)
    lane->reactor().post([lane, session, first] { lane->open(session, first); });
}

void PeerSessions::closed(const std::shared_ptr<Lane>& lane, const std::string& why) {
  home().post([self = shared_from_this(), lane, why] { self->lane_closed(lane, why); });
}

void PeerSessions::lane_closed(const std::shared_ptr<Lane>& lane, const std::string& why) {
  if (stopped_) return;
  if (const auto session = std::exchange(lane->session, nullptr))
    return break_session(session, why);
  const Hello& hello = lane->greeting();
  if (!lane->dialled()) {
    const auto arriving = arriving_.find(hello.node);
    if (arriving != arriving_.end() && arriving->second->id == hello.session) {
      abandon(*arriving->second);
      arriving_.erase(arriving);
    }
    return log_.say("stranger",
                    fmt::format("a connection from {} was closed: {}", lane->peer(), why));
  }
  const auto peer = peers_.find(hello.to);
  if (peer == peers_.end() || !peer->second.dialling || peer->second.dialling->id != hello.session)
    return;
  note_failure(hello.to, why);
  log_.say("dial " + hello.to,
           fmt::format("the node \"{}\" at {}: {}", hello.to, lane->peer(), why));
  abandon(*peer->second.dialling);
  peer->second.dialling.reset();
  dial_later(peer->second, false);
}

void PeerSessions::break_session(const std::shared_ptr<Session>& session, const std::string& why) {
  if (stopped_ || session->broken.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(session->node);
    if (found != sessions_.end() && found->second == session) sessions_.erase(found);
  }
  for (const auto& lane : session->lanes) {
    // LN2: whoever is taking frames has finished; nobody begins again.
    const std::lock_guard wait(lane->delivery);
    lane->session.reset();
  }
  note_failure(session->node, "lost: " + why);
  log_.say("broke " + session->node, fmt::format("lost the node \"{}\": {}", session->node, why));
  events_.broke(session->node);
  for (const auto& lane : session->lanes) close_later(lane);
  if (const auto peer = peers_.find(session->node); peer != peers_.end())
    dial_later(peer->second, now() - session->made > kLasted);
}

// Frames.

void PeerSessions::take(const fleet::NodeName& from, fleet::Frame frame) {
  if (!stopped_) events_.take(from, std::move(frame));
}

bool PeerSessions::send(const fleet::NodeName& to, const fleet::Frame& frame) {
  const auto session = find(to);
  if (!session || session->broken) return false;
  thread_local std::string bytes;
  bytes.clear();
  if (!encode_frame(frame, bytes)) {
    log_.say("large " + to,
             fmt::format("a frame for the node \"{}\" is larger than {} bytes", to, kFrameSizeMax));
    return false;
  }
  if (session->queued.fetch_add(bytes.size()) + bytes.size() > fleet::kQueuedMax) {
    home().post([self = shared_from_this(), session] {
      self->break_session(session, "it takes too little of what is sent to it");
    });
    return false;
  }
  const net::Reactor* const current = net::Reactor::current();
  const std::size_t index = current == nullptr ? 0 : current->index();
  const auto& lane = session->lanes[session->lane_of_reactor[index]];
  if (!lane->reactor().is_current()) {
    lane->reactor().post(
        [lane, copy = std::exchange(bytes, {})]() mutable { lane->push(std::move(copy)); });
  } else if (bytes.size() < kOwnPieceMin) {
    lane->push(std::string_view(bytes));
  } else {
    lane->push(std::exchange(bytes, {}));
  }
  return true;
}

fleet::Links PeerSessions::links() {
  const std::lock_guard lock(mutex_);
  fleet::Links links{.with = {}, .without = failures_};
  for (const auto& [node, session] : sessions_)
    if (!session->broken) links.with.insert(node);
  return links;
}

// Copies.

void PeerSessions::start_copy(const std::shared_ptr<Lane>& lane, ShardIndex shard) {
  const std::lock_guard lock(copies_mutex_);
  std::erase_if(copies_, [](Copying& copy) {
    if (!*copy.done) return false;
    copy.thread.join();  // It has nothing left to do but to go.
    return true;
  });
  if (stopped_ || !events_.serve_copy || copies_.size() >= kCopiesMax)
    return lane->refuse({.process = options_.process, .text = "it copies to too many others now"});
  auto done = std::make_shared<bool>(false);
  net::Stream& stream = lane->give_away();
  os::limit_silence(stream.fd(), fleet::kCopySilence);
  std::thread thread([self = shared_from_this(), lane, shard, done, &stream] {
    self->serve_copy(stream, shard);
    {
      const std::lock_guard ended(self->copies_mutex_);
      *done = true;
    }
    self->close_later(lane);
  });
  copies_.push_back({std::move(thread), stream.fd(), std::move(done)});
}

void PeerSessions::serve_copy(net::Stream& stream, ShardIndex shard) {
  BlockingStream to(stream, fleet::kCopyPatience);
  const HelloAnswer yes{.accepted = true, .version = kLinkVersion, .process = options_.process};
  bool begun = false;
  Status status = to.write(encode(yes));
  if (status)
    status = events_.serve_copy(shard, [&](const std::string& directory) {
      begun = true;
      return send_directory(to, directory);
    });
  if (status) return;
  log_.say("copy", fmt::format("the store of shard {} was not copied to another node: {}",
                               shard.value(), status.error().message));
  if (!begun) (void)send_failure(to, status.error().message);
}

}  // namespace stanchion::link

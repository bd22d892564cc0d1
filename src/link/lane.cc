#include "link/lane.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fleet/limits.h"
#include "link/frame_codec.h"
#include "link/link_tls.h"

namespace stanchion::link {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{100};
// For connecting, TLS, the hello and its answer, and the same of all other lanes of the session.
constexpr milliseconds kGreetingMax{3'000};
// Many more than a fleet has: so many strangers may stand at the door of a reactor.
constexpr std::size_t kLanesOfReactorMax = 1'024;
// Bytes read before the loop turns to its other work: some milliseconds of small frames.
constexpr std::size_t kReadPerTurn = 256 << 10;
constexpr std::size_t kKeptInput = 64 * 1024;
constexpr std::string_view kPing("\0\0\0\0", kFrameHeadSize);  // A frame of no bytes.

net::SteadyTime now() {
  return std::chrono::steady_clock::now();
}

// Frames are written together already; waiting for more would only delay them.
void set_no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// What OpenSSL says of a handshake that failed, and clears it.
std::string take_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "" : fmt::format(" ({})", reason);
}

}  // namespace

Lane::Lane(ReactorLanes& lanes, net::Stream stream, std::string peer)
    : owner_(lanes),
      reactor_(lanes.reactor()),
      stream_(std::move(stream)),
      peer_(std::move(peer)) {}

void Lane::dial(Hello hello) {
  dialled_ = true;
  phase_ = Phase::kConnecting;
  deadline_ = now() + kGreetingMax;
  out_.append(encode(hello));
  greeting_ = std::move(hello);
}

void Lane::expect_hello() {
  deadline_ = now() + kGreetingMax;
}

bool Lane::finish_connect() {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(stream_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    break_off(fmt::format("cannot be reached: {}", std::strerror(error)));
    return false;
  }
  phase_ = Phase::kGreeting;
  return true;
}

void Lane::on_ready(bool for_reading, bool ended) {
  if (phase_ == Phase::kClosed || phase_ == Phase::kGivenAway) return;
  const auto self = shared_from_this();
  if (phase_ == Phase::kConnecting && !finish_connect()) return;
  if (for_reading || ended) readable_ = true;
  advance();
}

void Lane::advance() {
  flush();
  read();
}

void Lane::open(std::shared_ptr<Session> whole, std::string_view first) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  CHECK(phase_ == Phase::kReady, "a lane is opened once, when it is ready");
  phase_ = Phase::kOpen;
  open_session_ = std::move(whole);
  heard_ = sent_ = now();
  open_session_->queued += first.size();
  out_.tail().append(first);
  out_.append(std::exchange(early_, {}));
  flush_later();
  // Frames may have come together with the answer.
  if (take_frames()) read();
}

void Lane::push(std::string_view bytes) {
  if (phase_ == Phase::kOpen) {
    out_.tail().append(bytes);
    flush_later();
  } else if (phase_ == Phase::kReady) {
    early_.append(bytes);
  }
}

void Lane::push(std::string&& bytes) {
  if (phase_ != Phase::kOpen) return push(std::string_view(bytes));
  out_.append(std::move(bytes));
  flush_later();
}

// Frames of one round leave together.
void Lane::flush_later() {
  if (std::exchange(flushing_, true)) return;
  reactor().defer([self = shared_from_this()] {
    self->flushing_ = false;
    self->flush();
  });
}

void Lane::consumed(std::size_t bytes) {
  out_.consume(bytes);
  if (open_session_) open_session_->queued -= bytes;
}

void Lane::flush() {
  if (phase_ == Phase::kConnecting || phase_ == Phase::kGivenAway || phase_ == Phase::kClosed)
    return;
  while (!out_.empty()) {
    net::OutputQueue::Pieces pieces;
    const net::IoResult result = stream_.write(out_.front(pieces));
    switch (result.state) {
      case net::IoState::kDone:
        consumed(result.bytes);
        sent_ = now();
        break;
      case net::IoState::kWantsRead:
      case net::IoState::kWantsWrite:
        return;
      case net::IoState::kEnd:
      case net::IoState::kFailed:
        return break_off(failure());
    }
  }
}

void Lane::read() {
  std::size_t taken = 0;
  while (readable_ && (phase_ == Phase::kGreeting || phase_ == Phase::kOpen)) {
    if (taken >= kReadPerTurn) {
      if (std::exchange(advancing_, true)) return;
      return reactor().post([self = shared_from_this()] {
        self->advancing_ = false;
        self->read();
      });
    }
    const std::span<char> scratch = owner_.scratch();
    const net::IoResult result = stream_.read(scratch);
    switch (result.state) {
      case net::IoState::kDone:
        taken += result.bytes;
        heard_ = now();
        input_.append(scratch.data(), result.bytes);
        if (!take_input()) return;
        break;
      case net::IoState::kWantsRead:
      case net::IoState::kWantsWrite:
        readable_ = false;
        break;
      case net::IoState::kEnd:
        return break_off("it closed the connection");
      case net::IoState::kFailed:
        return break_off(failure());
    }
  }
  // The handshake may have let the hello pass.
  if (phase_ == Phase::kGreeting) flush();
}

std::string Lane::failure() const {
  const std::string reason = take_reason();
  if (phase_ != Phase::kGreeting) return "the connection broke" + reason;
  const LinkTls* const tls = owner_.tls();
  if (tls == nullptr || reason.empty()) return "the handshake failed" + reason;
  return fmt::format("the handshake failed{}: probably {}", reason, tls->likely_cause());
}

bool Lane::take_input() {
  return phase_ == Phase::kGreeting ? take_greeting() : take_frames();
}

bool Lane::take_greeting() {
  const auto self = shared_from_this();
  if (dialled_) {
    const auto answer = take_answer(input_);
    if (!answer) return break_off(answer.error().message), false;
    if (!*answer) return true;
    if (!(*answer)->accepted) return break_off("refused: " + (*answer)->text), false;
    phase_ = Phase::kReady;
    owner_.events().answered(self, **answer);
    return true;
  }
  const auto hello = take_hello(input_);
  if (!hello) return break_off(hello.error().message), false;
  if (!*hello) return true;
  if (!input_.empty()) return break_off("it does not wait for an answer"), false;
  phase_ = Phase::kReady;
  greeting_ = **hello;
  owner_.events().hello(self, **hello);
  return phase_ != Phase::kClosed;
}

bool Lane::take_frames() {
  std::vector<fleet::Frame> frames;
  std::string_view rest = input_;
  while (rest.size() >= kFrameHeadSize) {
    if (rest.starts_with(kPing)) {
      rest.remove_prefix(kFrameHeadSize);
      continue;
    }
    const auto size = frame_size(rest);
    if (!size) return break_off("sent " + size.error().message), false;
    if (rest.size() < kFrameHeadSize + *size) break;
    auto frame = decode_frame(rest.substr(kFrameHeadSize, *size));
    if (!frame) return break_off("sent what cannot be read: " + frame.error().message), false;
    frames.push_back(std::move(*frame));
    rest.remove_prefix(kFrameHeadSize + *size);
  }
  input_.erase(0, input_.size() - rest.size());
  if (input_.empty() && input_.capacity() > kKeptInput) input_ = std::string();
  return deliver(std::move(frames));
}

bool Lane::deliver(std::vector<fleet::Frame> frames) {
  if (frames.empty()) return true;
  const std::lock_guard lock(delivery);
  if (open_session_->broken) return false;
  for (fleet::Frame& frame : frames) owner_.events().take(open_session_->node, std::move(frame));
  return true;
}

void Lane::refuse(const HelloAnswer& answer) {
  // The answer is small and nothing was written before it, so it fits into the socket.
  out_.append(encode(answer));
  flush();
  close();
}

net::Stream& Lane::give_away() {
  CHECK(phase_ == Phase::kReady, "a lane is given away behind its hello");
  phase_ = Phase::kGivenAway;
  return stream_;
}

void Lane::close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  stream_.close();
  open_session_.reset();
  owner_.remove(*this);
}

void Lane::break_off(const std::string& why) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  LaneEvents& events = owner_.events();
  close();
  events.closed(self, why);
}

void Lane::on_tick(net::SteadyTime time) {
  const auto self = shared_from_this();
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kGreeting:
    case Phase::kReady:
      if (time > deadline_) break_off("it did not answer in time");
      return;
    case Phase::kOpen:
      break;
    case Phase::kGivenAway:
    case Phase::kClosed:
      return;
  }
  if (time - heard_ > fleet::kSilentAfter) {
    // If this process was not running for a while, what came meanwhile has yet to be read.
    readable_ = true;
    read();
    if (phase_ == Phase::kOpen && now() - heard_ > fleet::kSilentAfter)
      break_off("it says nothing any more");
    return;
  }
  if (out_.empty() && time - sent_ >= fleet::kPingInterval) {
    open_session_->queued += kPing.size();
    push(kPing);
  }
}

ReactorLanes::ReactorLanes(net::Reactor& reactor, LaneEvents& events, const LinkTls* tls)
    : reactor_(reactor),
      events_(events),
      tls_(tls),
      poller_(std::make_shared<net::Poller>(reactor, [this] { closed_.clear(); })),
      timer_(reactor, [this] { on_tick(); }),
      scratch_(std::make_unique_for_overwrite<char[]>(kScratchSize)) {}

void ReactorLanes::start() {
  poller_->start();
}

void ReactorLanes::stop() {
  stopped_ = true;
  timer_.cancel();
  while (!lanes_.empty()) lanes_.back()->close();
  poller_->stop();
  closed_.clear();
}

void ReactorLanes::dial(const net::ClientAddress& address, const std::string& peer,
                        const Hello& hello) {
  if (stopped_) return;
  os::Fd fd(::socket(address.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool begun =
      fd.valid() && (::connect(fd.get(), address.get(), address.size) == 0 || errno == EINPROGRESS);
  const int error = errno;
  ssl_st* const tls = tls_ != nullptr && begun ? tls_->new_session() : nullptr;
  const int number = fd.get();
  const auto lane =
      std::make_shared<Lane>(*this, net::Stream(begun ? fd.release() : -1, tls), peer);
  if (tls != nullptr) SSL_set_connect_state(tls);
  lane->dial(hello);
  if (!begun || (tls_ != nullptr && tls == nullptr))
    return events_.closed(lane, fmt::format("cannot be reached: {}", std::strerror(error)));
  set_no_delay(number);
  add(lane, number);
}

void ReactorLanes::accept(os::Fd fd, const std::string& peer) {
  if (stopped_ || lanes_.size() >= kLanesOfReactorMax) return;
  ssl_st* const tls = tls_ != nullptr ? tls_->new_session() : nullptr;
  if (tls_ != nullptr && tls == nullptr) return;
  set_no_delay(fd.get());
  const int number = fd.release();
  const auto lane = std::make_shared<Lane>(*this, net::Stream(number, tls), peer);
  lane->expect_hello();
  add(lane, number);
}

void ReactorLanes::add(const std::shared_ptr<Lane>& lane, int fd) {
  lanes_.push_back(lane);
  if (!timer_.armed()) timer_.arm(now() + kTick);
  if (!poller_->add(fd, *lane)) {
    lane->close();
    events_.closed(lane, "the machine has no resources for another connection");
  }
}

void ReactorLanes::remove(Lane& lane) {
  const auto found = std::ranges::find(
      lanes_, &lane, [](const std::shared_ptr<Lane>& each) { return each.get(); });
  if (found == lanes_.end()) return;
  closed_.push_back(std::move(*found));
  lanes_.erase(found);
}

void ReactorLanes::on_tick() {
  const auto lanes = lanes_;  // A lane that closes removes itself.
  for (const auto& lane : lanes) lane->on_tick(now());
  closed_.clear();
  if (!lanes_.empty()) timer_.arm(now() + kTick);
}

}  // namespace stanchion::link

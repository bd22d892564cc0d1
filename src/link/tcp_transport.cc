#include "link/tcp_transport.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "fleet/limits.h"
#include "link/link_address.h"
#include "link/peer_sessions.h"
#include "link/store_copy.h"
#include "os/silence.h"

namespace stanchion::link {
namespace {

constexpr std::chrono::milliseconds kConnectMax{3'000};

// The first address of the node that can be connected to.
Result<os::Fd> connect_to(const std::string& address, bool needs_loopback) {
  const auto parts = parse_address(address);
  if (!parts) return fail(fmt::format("\"{}\" is no HOST:PORT", address));
  const auto found = net::resolve(parts->host, parts->port);
  if (!found) return std::unexpected(found.error());
  Failure last{address + " has no address on this machine, and there is no TLS"};
  for (const net::ClientAddress& one : *found) {
    if (needs_loopback && !is_loopback(one)) continue;
    os::Fd fd(::socket(one.get()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    os::limit_silence(fd.get(), fleet::kCopySilence);
    int error = 0;
    if (::connect(fd.get(), one.get(), one.size) != 0) error = errno;
    if (error == EINPROGRESS) {
      pollfd waiting{.fd = fd.get(), .events = POLLOUT, .revents = 0};
      socklen_t size = sizeof error;
      if (::poll(&waiting, 1, static_cast<int>(kConnectMax.count())) != 1) {
        error = ETIMEDOUT;
      } else {
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0) return fd;
    last = {fmt::format("{}: {}", to_text(one), std::strerror(error)), error};
  }
  return std::unexpected(std::move(last));
}

}  // namespace

struct TcpTransport::Impl {
  std::shared_ptr<PeerSessions> peers;
};

TcpTransport::TcpTransport(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TcpTransport::~TcpTransport() {
  stop();
}

Result<std::unique_ptr<TcpTransport>> TcpTransport::listen(net::ReactorPool& pool,
                                                           LinkOptions options) {
  auto tls = LinkTls::load(options.security, options.fleet);
  if (!tls) return std::unexpected(std::move(tls).error());
  auto peers = std::make_shared<PeerSessions>(pool, std::move(options), std::move(*tls));
  RETURN_IF_FAILED(peers->listen());
  auto impl = std::make_shared<Impl>();
  impl->peers = std::move(peers);
  return std::unique_ptr<TcpTransport>(new TcpTransport(std::move(impl)));
}

void TcpTransport::start(LinkEvents events) {
  impl_->peers->start(std::move(events));
}

void TcpTransport::stop() {
  impl_->peers->stop();
}

std::uint16_t TcpTransport::port() const {
  return impl_->peers->port();
}

void TcpTransport::set_peers(const std::map<fleet::NodeName, std::string>& addresses) {
  impl_->peers->set_peers(addresses);
}

bool TcpTransport::send(const fleet::NodeName& to, fleet::Frame frame) {
  return impl_->peers->send(to, frame);
}

std::optional<fleet::Links> TcpTransport::links() {
  return impl_->peers->links();
}

Status TcpTransport::copy_store(const std::string& address, ShardIndex shard,
                                const std::string& target) {
  const LinkTls* const tls = impl_->peers->tls();
  auto fd = connect_to(address, tls == nullptr);
  if (!fd) return std::unexpected(std::move(fd).error());
  ssl_st* const session = tls != nullptr ? tls->new_session() : nullptr;
  if (tls != nullptr && session == nullptr) return fail("out of memory for TLS");
  net::Stream stream(fd->release(), session);
  if (session != nullptr) SSL_set_connect_state(session);
  BlockingStream peer(stream, fleet::kCopyPatience);
  Hello hello = impl_->peers->my_hello();
  hello.purpose = Hello::Purpose::kCopy;
  hello.shard = shard;
  RETURN_IF_FAILED(peer.write(encode(hello)));
  std::string input;
  for (;;) {
    char byte = 0;
    RETURN_IF_FAILED(peer.read({&byte, 1}));
    input.push_back(byte);
    const auto answer = take_answer(input);
    if (!answer) return std::unexpected(answer.error());
    if (!*answer) continue;
    if (!(*answer)->accepted) return fail(fmt::format("{} refused: {}", address, (*answer)->text));
    break;
  }
  return receive_directory(peer, target);
}

}  // namespace stanchion::link

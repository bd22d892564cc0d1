// The client on an Asio loop. A call owns its descriptor's watch and its timer; the client owns the
// calls. Asio may run handlers late; the number of the round tells a handler that nobody waits for
// it any more.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>
#include <unordered_map>

#include "base/check.h"
#include "net/client_call.h"
#include "net/http_client.h"

namespace stanchion::net {
namespace {

namespace asio = boost::asio;

SteadyTime steady_now() {
  return std::chrono::steady_clock::now();
}

Result<std::vector<ClientAddress>> to_addresses(
    const std::string& host, const boost::system::error_code& error,
    const asio::ip::tcp::resolver::results_type& found) {
  if (error) return fail(host + ": " + error.message());
  std::vector<ClientAddress> addresses;
  for (const auto& entry : found) {
    const auto endpoint = entry.endpoint();
    ClientAddress& address = addresses.emplace_back();
    CHECK(endpoint.size() <= sizeof address.storage, "every address fits a sockaddr_storage");
    std::memcpy(&address.storage, endpoint.data(), endpoint.size());
    address.size = static_cast<socklen_t>(endpoint.size());
  }
  if (addresses.empty()) return fail(host + ": has no address");
  return addresses;
}

}  // namespace

struct AsyncHttpClient::Impl : std::enable_shared_from_this<AsyncHttpClient::Impl> {
  // A call and what wakes it.
  struct Pending : std::enable_shared_from_this<Pending> {
    Pending(Impl& o, CallId i, ClientRequest request, Done d)
        : owner(o.weak_from_this()),
          id(i),
          resolver(o.loop),
          descriptor(o.loop),
          timer(o.loop),
          call(o.state, std::move(request), steady_now()),
          done(std::move(d)) {}
    ~Pending() { unwatch(); }

    void go_on();
    void look_up();
    void watch();
    void wait_for_deadline();
    void wait_for_socket(asio::posix::descriptor_base::wait_type what);
    void unwatch();
    void on_event(std::uint64_t round);

    std::weak_ptr<Impl> owner;
    const CallId id;
    asio::ip::tcp::resolver resolver;
    asio::posix::stream_descriptor descriptor;
    asio::steady_timer timer;
    ClientCall call;
    Done done;
    std::uint64_t round = 0;  // The round of waiting: handlers of earlier rounds are ignored.
  };

  Impl(asio::io_context& l, ClientOptions options) : loop(l), state(std::move(options)) {}

  asio::io_context& loop;
  ClientState state;
  CallId next_id = 1;
  std::unordered_map<CallId, std::shared_ptr<Pending>> pending;
};

void AsyncHttpClient::Impl::Pending::go_on() {
  unwatch();
  switch (call.needs()) {
    case ClientCall::Needs::kAddresses:
      return look_up();
    case ClientCall::Needs::kSocket:
      return watch();
    case ClientCall::Needs::kNothing:
      break;
  }
  const auto self = shared_from_this();
  if (const auto client = owner.lock()) client->pending.erase(id);
  auto tell = std::move(done);
  tell(call.take_result(), call.sent());
}

void AsyncHttpClient::Impl::Pending::look_up() {
  const std::uint64_t mine = ++round;
  const auto on_found = [weak = weak_from_this(), mine](const boost::system::error_code& error,
                                                        const auto& found) {
    const auto self = weak.lock();
    if (!self || mine != self->round) return;
    self->unwatch();
    self->call.take_addresses(to_addresses(self->call.host(), error, found), steady_now());
    self->go_on();
  };
  wait_for_deadline();
  resolver.async_resolve(call.host(), call.port(), on_found);
}

void AsyncHttpClient::Impl::Pending::watch() {
  ++round;
  boost::system::error_code error;
  descriptor.assign(call.fd(), error);
  wait_for_deadline();
  wait_for_socket(asio::posix::descriptor_base::wait_read);
  if (call.wants_write()) wait_for_socket(asio::posix::descriptor_base::wait_write);
}

void AsyncHttpClient::Impl::Pending::wait_for_deadline() {
  const bool at_once = call.needs() == ClientCall::Needs::kSocket && call.may_have_more();
  timer.expires_at(at_once ? steady_now() : call.deadline());
  timer.async_wait([weak = weak_from_this(), mine = round](const boost::system::error_code&) {
    if (const auto self = weak.lock()) self->on_event(mine);
  });
}

void AsyncHttpClient::Impl::Pending::wait_for_socket(asio::posix::descriptor_base::wait_type what) {
  descriptor.async_wait(what,
                        [weak = weak_from_this(), mine = round](const boost::system::error_code&) {
                          if (const auto self = weak.lock()) self->on_event(mine);
                        });
}

// The connection owns the socket: the descriptor releases it without closing it.
void AsyncHttpClient::Impl::Pending::unwatch() {
  ++round;
  timer.cancel();
  if (descriptor.is_open()) descriptor.release();
}

void AsyncHttpClient::Impl::Pending::on_event(std::uint64_t of_round) {
  if (of_round != round || owner.expired()) return;
  // The call may close its socket, so the socket must no longer be watched.
  unwatch();
  if (call.needs() == ClientCall::Needs::kAddresses) {
    call.take_addresses(fail(call.host() + ": the name was not found in time"), steady_now());
  } else {
    call.advance(steady_now());
  }
  go_on();
}

AsyncHttpClient::AsyncHttpClient(asio::io_context& loop, ClientOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}

AsyncHttpClient::~AsyncHttpClient() = default;

AsyncHttpClient::CallId AsyncHttpClient::call(ClientRequest request, Done done) {
  const CallId id = impl_->next_id++;
  auto pending = std::make_shared<Impl::Pending>(*impl_, id, std::move(request), std::move(done));
  impl_->pending.emplace(id, pending);
  asio::post(impl_->loop, [weak = std::weak_ptr(pending)] {
    if (const auto self = weak.lock()) self->go_on();
  });
  return id;
}

std::optional<bool> AsyncHttpClient::cancel(CallId call) {
  const auto found = impl_->pending.find(call);
  if (found == impl_->pending.end()) return std::nullopt;
  const bool sent = found->second->call.sent();
  // A call that is delivering its result keeps itself alive; nobody else does.
  impl_->pending.erase(found);
  return sent;
}

std::size_t AsyncHttpClient::under_way() const {
  return impl_->pending.size();
}

}  // namespace stanchion::net

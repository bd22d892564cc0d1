#include "net/http_server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <latch>
#include <utility>

#include "base/check.h"
#include "net/exchange_state.h"
#include "net/listen_socket.h"
#include "net/listener.h"

namespace stanchion::net {

// Exchange.

void ExchangeState::set_on_abandoned(const std::shared_ptr<ExchangeState>& state, Task callback) {
  state->on_abandoned = std::move(callback);
  if (!state->abandoned) return;
  state->abandoned = false;
  abandon(state);
}

void ExchangeState::abandon(const std::shared_ptr<ExchangeState>& state) {
  if (!state->is_open() || state->abandoned) return;
  state->abandoned = true;
  if (!state->on_abandoned) return;
  boost::asio::post(state->reactor->context(), [state] {
    if (state->is_open() && state->on_abandoned && !state->disowned) {
      std::exchange(state->on_abandoned, nullptr)();
    }
  });
}

namespace {

void drop(const std::shared_ptr<ExchangeState>& state) {
  state->phase = ExchangeState::Phase::kDropped;
  state->on_abandoned = nullptr;
  if (state->connection != nullptr) state->connection->on_answer_ready();
}

void end_stream(const std::shared_ptr<ExchangeState>& state) {
  state->phase = ExchangeState::Phase::kAnswered;
  state->on_abandoned = nullptr;
  if (state->connection != nullptr) state->connection->end_stream(*state);
}

}  // namespace

Exchange::Exchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}

Exchange::~Exchange() {
  if (state_ == nullptr) return;
  Reactor& reactor = *state_->reactor;
  if (reactor.is_current()) {
    drop(state_);
  } else {
    reactor.post([state = std::move(state_)] { drop(state); });
  }
}

HttpRequest& Exchange::request() {
  CHECK(state_ != nullptr, "an answered exchange has no request");
  return state_->request;
}

Reactor& Exchange::reactor() {
  CHECK(state_ != nullptr, "an answered exchange has no reactor");
  return *state_->reactor;
}

void Exchange::answer(HttpResponse begin, BodySource source) {
  CHECK(state_ != nullptr, "an exchange is answered once");
  if (state_->connection != nullptr) state_->source = std::move(source);
  answer(std::move(begin));
}

void Exchange::answer(HttpResponse response) {
  CHECK(state_ != nullptr, "an exchange is answered once");
  CHECK(state_->reactor->is_current(), "an exchange is answered on its reactor");
  state_->phase = ExchangeState::Phase::kAnswered;
  state_->on_abandoned = nullptr;
  Connection* connection = state_->connection;
  if (connection != nullptr) {
    state_->response = std::move(response);
    state_->claimed = 0;
    connection->count_pending(*state_);
  }
  state_.reset();  // Before the connection checks whether it may reuse the state.
  if (connection != nullptr) connection->on_answer_ready();
}

ResponseStream Exchange::stream(HttpResponse begin) {
  CHECK(state_ != nullptr, "an exchange is answered once");
  CHECK(state_->reactor->is_current(), "an exchange is answered on its reactor");
  state_->phase = ExchangeState::Phase::kStreaming;
  state_->on_abandoned = nullptr;
  state_->claimed = 0;
  Connection* connection = state_->connection;
  if (connection != nullptr) {
    state_->request.clear();
    release(state_->request.head);
    release(state_->request.body);
    state_->response = std::move(begin);
    connection->count_pending(*state_);
  }
  ResponseStream stream(std::move(state_));
  if (connection != nullptr) connection->on_answer_ready();
  return stream;
}

void Exchange::on_abandoned(Task callback) {
  CHECK(state_ != nullptr, "an answered exchange is nobody's to abandon");
  ExchangeState::set_on_abandoned(state_, std::move(callback));
}

bool Exchange::abandoned() const {
  return state_ != nullptr && state_->abandoned;
}

bool Exchange::cut_off() const {
  return state_ != nullptr && state_->connection == nullptr;
}

void Exchange::forget_request() {
  CHECK(state_ != nullptr, "an answered exchange has no request");
  HttpRequest& request = state_->request;
  // Small buffers are kept, because the next request can use them.
  if (request.body.capacity() + request.head.capacity() <= ExchangeState::kKeptBytes) return;
  request.clear();
  release(request.body);
  release(request.head);
  request.headers = std::vector<HttpHeader>();
  if (state_->connection != nullptr) state_->connection->count_pending(*state_);
}

bool Exchange::hold(std::size_t bytes) {
  CHECK(state_ != nullptr, "nothing is held for an answered exchange");
  state_->claimed = bytes;
  return state_->connection == nullptr || state_->connection->count_pending(*state_);
}

// ResponseStream.

ResponseStream::ResponseStream(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}

ResponseStream::~ResponseStream() {
  if (state_ == nullptr) return;
  state_->disowned = true;
  Reactor& reactor = *state_->reactor;
  if (reactor.is_current()) {
    end_stream(state_);
  } else {
    reactor.post([state = std::move(state_)] { end_stream(state); });
  }
}

bool ResponseStream::send(std::string_view piece) {
  CHECK(state_ != nullptr, "a stream that was moved away sends nothing");
  CHECK(state_->reactor->is_current(), "a stream is used on its reactor");
  return state_->connection != nullptr && state_->connection->send_piece(*state_, piece);
}

void ResponseStream::on_gone(Task callback) {
  CHECK(state_ != nullptr, "a stream that was moved away ends for nobody");
  ExchangeState::set_on_abandoned(state_, std::move(callback));
}

// HttpHandler.

HttpResponse HttpHandler::refuse(const HttpRequest&, int status, std::string_view reason) {
  HttpResponse response(status, std::string(reason) + "\n");
  response.add_header("Content-Type", "text/plain");
  return response;
}

// HttpServer.

namespace {

// Where silent connections give way to new ones, each listener has its share of connections_max, which
// has to be more than one: a connection gives way only after some turns. So there may be fewer
// listeners than reactors.
std::size_t listeners_for(const HttpLimits& limits, std::size_t reactors) {
  constexpr std::size_t kShareMin = 4;
  if (!limits.silent_give_way) return reactors;
  return std::clamp(limits.connections_max / kShareMin, std::size_t{1}, reactors);
}

}  // namespace

struct HttpServer::Impl {
  ReactorPool& pool;
  std::shared_ptr<ServerShared> shared;
  std::vector<std::shared_ptr<Listener>> listeners;  // One per reactor, of the first ones.
  ListenSockets sockets;
  bool stopped = false;

  // Runs `work` for each listener on its reactor and waits for all; if no reactor runs, on this
  // thread.
  void on_each_and_wait(void (Listener::*work)()) {
    CHECK(Reactor::current() == nullptr, "a reactor cannot wait for itself");
    if (!pool.running()) {
      for (const auto& listener : listeners) ((*listener).*work)();
      return;
    }
    std::latch done(static_cast<std::ptrdiff_t>(listeners.size()));
    for (const auto& listener : listeners) {
      listener->reactor().post([&done, listener, work] {
        ((*listener).*work)();
        done.count_down();
      });
    }
    done.wait();
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(ReactorPool& pool, HttpServerOptions options,
                                                      HttpHandler& handler) {
  const std::size_t listeners = listeners_for(options.limits, pool.size());
  auto sockets = options.unix_path.empty() ? listen_on_tcp(options.host, options.port, listeners)
                                           : listen_on_unix_socket(options.unix_path, listeners);
  if (!sockets) return std::unexpected(std::move(sockets).error());
  auto shared = std::make_shared<ServerShared>();
  shared->options = std::move(options);
  shared->handler = &handler;
  shared->listeners = listeners;
  auto impl = std::make_unique<Impl>(Impl{pool, std::move(shared), {}, std::move(*sockets)});
  for (std::size_t i = 0; i < listeners; ++i) {
    auto listener = std::make_shared<Listener>(impl->shared, pool[i]);
    impl->listeners.push_back(listener);
    pool[i].post([listener, fds = impl->sockets.take(i)]() mutable {
      for (Fd& fd : fds) listener->add_socket(fd.release());
      listener->start();
    });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::uint16_t HttpServer::port() const {
  return impl_->sockets.port();
}

void HttpServer::drain(Task done) {
  CHECK(!impl_->shared->on_drained, "a server is drained once");
  impl_->shared->on_drained = std::move(done);
  impl_->shared->draining = impl_->listeners.size();
  for (const auto& listener : impl_->listeners) {
    listener->reactor().post([listener] { listener->drain(); });
  }
}

void HttpServer::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->on_each_and_wait(&Listener::stop);
  impl_->sockets.remove_path();
}

HttpStats HttpServer::stats() const {
  HttpStats sum;
  for (const auto& listener : impl_->listeners) {
    const ListenerCounters& counters = listener->counters();
    sum.accepted += counters.accepted.get();
    sum.refused += counters.refused.get();
    sum.requests += counters.requests.get();
    sum.bad_requests += counters.bad_requests.get();
    sum.timeouts += counters.timeouts.get();
    sum.shed += counters.shed.get();
    sum.held_bytes += listener->held();
  }
  sum.open = impl_->shared->open.load(std::memory_order_relaxed);
  return sum;
}

}  // namespace stanchion::net

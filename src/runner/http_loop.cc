#include "runner/http_loop.h"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <utility>

#include "net/http_message.h"
#include "runner/job_status.h"

namespace stanchion::runner {

namespace asio = boost::asio;

struct HttpLoop::Impl {
  explicit Impl(net::ClientOptions options)
      : work(loop.get_executor()),
        client(std::make_unique<net::AsyncHttpClient>(loop, std::move(options))) {}

  asio::io_context loop;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::unique_ptr<net::AsyncHttpClient> client;
  std::thread thread;
};

HttpLoop::HttpLoop(net::ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  impl_->thread = std::thread([this] { impl_->loop.run(); });
}

HttpLoop::~HttpLoop() {
  impl_->loop.stop();
  impl_->thread.join();
  impl_->client.reset();
}

void HttpLoop::post(std::function<void()> task) {
  asio::post(impl_->loop, std::move(task));
}

void HttpLoop::after(std::chrono::milliseconds delay, std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(impl_->loop, delay);
  timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
    if (!error) task();
  });
}

HttpLoop::CallId HttpLoop::call(net::ClientRequest request, Done done) {
  return impl_->client->call(
      std::move(request), [done = std::move(done)](Result<net::ClientResponse> response,
                                                   bool /*sent*/) { done(std::move(response)); });
}

void HttpLoop::cancel(CallId call) {
  static_cast<void>(impl_->client->cancel(call));
}

std::string answer_in_words(const net::ClientResponse& response) {
  std::string text =
      fmt::format("answered {} {}", response.status, net::reason_phrase(response.status));
  if (!response.body.empty()) text += fmt::format(": {}", in_short(response.body));
  return text;
}

}  // namespace stanchion::runner

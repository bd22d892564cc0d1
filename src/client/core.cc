#include "client/core.h"

#include <fmt/format.h>
#include <pthread.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "wire/sigv4.h"

namespace stanchion::client {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kContentType = "application/x-amz-json-1.0";

net::ClientOptions http_options(const Options& options, const Settings& settings) {
  return {.trust = {.verify = options.tls.verify,
                    .ca_file = settings.ca_file,
                    .advice = "Name the file of its authority in TlsOptions::ca_file or by "
                              "$AWS_CA_BUNDLE"},
          .server_name = options.tls.server_name,
          .connect_timeout = options.connect_timeout,
          .request_timeout = options.request_timeout,
          .idle_max = options.connections_max,
          .idle_time = options.idle_time};
}

std::string user_agent(const Options& options) {
  std::string agent = "stanchion-client/" STANCHION_VERSION;
  if (!options.user_agent.empty()) agent += " " + options.user_agent;
  return agent;
}

// Signals are for the program's own threads, so this thread blocks them.
std::thread start_thread(std::function<void()> run) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), "stanchion-cl");
  return thread;
}

}  // namespace

Core::Core(Options options, Settings settings)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      work_(asio::make_work_guard(loop_)),
      http_(std::make_unique<net::AsyncHttpClient>(loop_, http_options(options_, settings_))),
      keeper_(std::make_unique<CredentialKeeper>(
          settings_.credentials,
          [this](std::function<void()> task) { asio::post(loop_, std::move(task)); },
          [this](const Error* error) { on_credentials(error); })),
      thread_(start_thread([this] { loop_.run(); })) {}

Core::~Core() {
  CHECK(!is_own_thread(), "a client is not destroyed by a completion that runs on its own thread");
  post([this] { close(); });
  thread_.join();
}

void Core::post(Task task) {
  asio::post(loop_, std::move(task));
}

void Core::run_on_loop(Task task) {
  asio::dispatch(loop_, std::move(task));
}

Core::Id Core::call(Order order, Done done) {
  const Id id = next_id_.fetch_add(1, std::memory_order_relaxed);
  if (in_hand_.fetch_add(1, std::memory_order_relaxed) >= options_.calls_max) {
    post([this, done = std::move(done)]() mutable {
      in_hand_.fetch_sub(1, std::memory_order_relaxed);
      done(local_error(code::kTooManyCalls, "more calls are under way than calls_max allows"));
    });
    return id;
  }
  post([this, id, order = std::move(order), done = std::move(done)]() mutable {
    calls_.emplace(id, Call{.order = std::move(order), .done = std::move(done)});
    if (closed_) return finish(id, local_error(code::kClosed, "the client is being destroyed"));
    begin(id);
  });
  return id;
}

// Needs credentials and a connection; if it has to wait for one, this is called again.
void Core::begin(Id id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const Credentials* credentials = keeper_->get(clock_.now());
  if (credentials == nullptr) return without_credentials_.push_back(id);
  if (on_wire_ >= options_.connections_max) return line_.push_back(id);
  send(id, found->second, *credentials);
}

void Core::on_credentials(const Error* error) {
  for (const Id id : std::exchange(without_credentials_, {})) {
    if (error == nullptr) {
      begin(id);
    } else if (calls_.contains(id)) {
      finish(id, *error);
    }
  }
}

net::ClientRequest Core::request_of(const Call& call, const Credentials& credentials) {
  net::ClientRequest request{.method = "POST",
                             .url = settings_.url,
                             .body = call.order.body,
                             .repeatable = call.order.repetition == Repetition::kHarmless,
                             .timeout = call.order.timeout};
  request.headers = {{"Content-Type", std::string(kContentType)},
                     {"X-Amz-Target", fmt::format("AmazonSQS.{}", name_of(call.order.action))},
                     {"User-Agent", user_agent(options_)}};
  if (credentials.anonymous()) return request;
  const std::string host = request.url.authority();
  std::vector<wire::HeaderView> headers{{"Host", host}};
  for (const auto& [name, value] : request.headers)
    if (name != "User-Agent") headers.emplace_back(name, value);
  auto added = wire::sign({"POST", request.url.path, headers, request.body},
                          {.access_key_id = credentials.access_key_id,
                           .secret = credentials.secret_access_key,
                           .session_token = credentials.session_token,
                           .region = settings_.region},
                          clock_.now());
  for (auto& header : added) request.headers.push_back(std::move(header));
  return request;
}

void Core::send(Id id, Call& call, const Credentials& credentials) {
  ++on_wire_;
  ++call.attempts;
  call.generation = keeper_->generation();
  call.on_wire = http_->call(request_of(call, credentials),
                             [this, id](Result<net::ClientResponse> response, bool sent) {
                               on_answer(id, std::move(response), sent);
                             });
}

void Core::on_answer(Id id, Result<net::ClientResponse> response, bool sent) {
  const auto found = calls_.find(id);
  CHECK(found != calls_.end(), "a call that is on the wire is known");
  Call& call = found->second;
  call.on_wire.reset();
  --on_wire_;
  if (!response) {
    on_error(id, call, error_of(response.error(), sent));
  } else if (response->status != 200) {
    on_error(id, call, error_of(*response));
  } else {
    CallInfo info{
        .attempts = call.attempts,
        .may_be_duplicated = call.ambiguous && call.order.repetition == Repetition::kDoubles};
    if (const std::string* request_id = response->header(wire::kRequestIdHeader))
      info.request_id = *request_id;
    finish(id, Outcome<std::string>(std::move(response->body), std::move(info)));
  }
  start_next();
}

void Core::on_error(Id id, Call& call, Error error) {
  const bool again = call.attempts < options_.retry.attempts_max;
  if (refuses_credentials(error)) keeper_->refuse(call.generation);
  // Credentials from a file or an endpoint may have changed since; fetching them again once is
  // enough to find out.
  if (again && refuses_credentials(error) && call.attempts == 1) {
    return wait_and_begin(id, call, std::chrono::milliseconds(0));
  }
  if (again && may_repeat(error, call.order.repetition, options_.retry)) {
    call.ambiguous = call.ambiguous || error.may_have_happened;
    return wait_and_begin(id, call,
                          delay_before_next(error, call.attempts, random(), options_.retry));
  }
  error.may_have_happened = error.may_have_happened || call.ambiguous;
  finish(id, std::move(error));
}

void Core::wait_and_begin(Id id, Call& call, std::chrono::milliseconds delay) {
  call.timer = std::make_unique<asio::steady_timer>(loop_, delay);
  call.timer->async_wait([this, id](const boost::system::error_code& error) {
    if (!error) begin(id);
  });
}

void Core::start_next() {
  while (!line_.empty() && on_wire_ < options_.connections_max && !closed_) {
    const Id id = line_.front();
    line_.pop_front();
    begin(id);
  }
}

void Core::finish(Id id, Outcome<std::string> outcome) {
  auto node = calls_.extract(id);
  CHECK(!node.empty(), "only a call that is known comes to an end");
  in_hand_.fetch_sub(1, std::memory_order_relaxed);
  Call& call = node.mapped();
  if (!outcome)
    outcome = Outcome<std::string>(
        outcome.error(), {.attempts = call.attempts, .request_id = outcome.error().request_id});
  call.done(std::move(outcome));
}

void Core::cancel(Id id) {
  post([this, id] {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    Call& call = found->second;
    Error error = local_error(code::kCancelled, "the call was cancelled");
    error.may_have_happened = call.ambiguous;
    if (call.on_wire) {
      error.may_have_happened = http_->cancel(*call.on_wire).value_or(true) || call.ambiguous;
      --on_wire_;
    }
    std::erase(line_, id);
    std::erase(without_credentials_, id);
    finish(id, std::move(error));
    start_next();
  });
}

void Core::close() {
  closed_ = true;
  line_.clear();
  without_credentials_.clear();
  while (!calls_.empty()) {
    const auto& [id, call] = *calls_.begin();
    Error error = local_error(code::kClosed, "the client was destroyed before the call ended");
    error.may_have_happened = call.ambiguous;
    if (call.on_wire)
      error.may_have_happened = http_->cancel(*call.on_wire).value_or(true) || call.ambiguous;
    finish(id, std::move(error));
  }
  // Tasks that the keeper's thread posts run before the loop ends, so the keeper must still exist.
  keeper_->stop();
  http_.reset();
  work_.reset();
}

double Core::random() {
  return static_cast<double>(entropy_.u64() >> 11) / static_cast<double>(1ULL << 53);
}

}  // namespace stanchion::client

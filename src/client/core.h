// Makes calls of any action: signs them, sends them on reused connections, and repeats those that
// may be repeated.
//
//   call() ─▶ credentials ─▶ in line for a connection ─▶ on the wire ─▶ done
//                  ▲                                         │
//                  └──────── a random wait ◀── may be repeated
//
// Any thread may call call() and cancel(); everything else happens on the core's own thread.
//
//   CO1  A call is in calls_ from its arrival on the loop until its completion, and in at most one
//        of these states: waiting for credentials, in line_, on the wire, waiting for its timer.
//   CO2  At most connections_max calls are on the wire.
//   CO3  A request that may be duplicated is not sent again after an attempt that may have
//        succeeded, unless the options allow it.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "client/credential_keeper.h"
#include "client/options.h"
#include "client/outcome.h"
#include "client/retry.h"
#include "client/settings.h"
#include "model/action.h"
#include "net/http_client.h"
#include "os/clock.h"
#include "os/entropy.h"

namespace stanchion::client {

// A call as the core sees it.
struct Order {
  Action action;
  std::string body;
  Repetition repetition = Repetition::kHarmless;
  std::chrono::milliseconds timeout{0};  // Of one attempt.
};

class Core {
 public:
  using Id = std::uint64_t;
  // The body of the answer. Called on the core's thread.
  using Done = std::move_only_function<void(Outcome<std::string>)>;
  using Task = std::move_only_function<void()>;

  Core(Options options, Settings settings);
  // Ends calls under way with code::kClosed. Not on the core's thread.
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  const Options& options() const { return options_; }
  const Settings& settings() const { return settings_; }

  Id call(Order order, Done done);
  void cancel(Id id);

  // Runs the task on the core's thread, at once if this is that thread.
  void run_on_loop(Task task);
  // Runs it there, never inside this call.
  void post(Task task);
  // The core's thread only.
  boost::asio::io_context& loop() { return loop_; }
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  struct Call {
    Order order;
    Done done;
    int attempts = 0;
    bool ambiguous = false;  // An earlier attempt may have succeeded.
    std::uint64_t generation = 0;
    std::optional<net::AsyncHttpClient::CallId> on_wire = {};
    std::unique_ptr<boost::asio::steady_timer> timer = {};
  };

  void begin(Id id);
  void send(Id id, Call& call, const Credentials& credentials);
  net::ClientRequest request_of(const Call& call, const Credentials& credentials);
  void on_answer(Id id, Result<net::ClientResponse> response, bool sent);
  void on_error(Id id, Call& call, Error error);
  void wait_and_begin(Id id, Call& call, std::chrono::milliseconds delay);
  void finish(Id id, Outcome<std::string> outcome);
  void start_next();
  void on_credentials(const Error* error);
  void close();
  double random();

  const Options options_;
  const Settings settings_;
  os::SystemClock clock_;
  os::SystemEntropy entropy_;
  boost::asio::io_context loop_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_;
  std::unique_ptr<net::AsyncHttpClient> http_;
  std::unique_ptr<CredentialKeeper> keeper_;
  std::unordered_map<Id, Call> calls_;
  std::deque<Id> line_;
  std::vector<Id> without_credentials_;
  std::size_t on_wire_ = 0;
  bool closed_ = false;
  std::atomic<Id> next_id_{1};
  std::atomic<std::size_t> in_hand_{0};
  std::thread thread_;
};

}  // namespace stanchion::client

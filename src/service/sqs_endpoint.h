// The SQS endpoint: an HTTP exchange becomes a request of the model, goes to the broker, and its
// reply becomes the answer. Nothing below this layer depends on the protocol of a request.
//
//   exchange ─▶ who calls? ─▶ decode ─▶ may they? ─▶ broker ─▶ encode ─▶ answer
//
// Called on the reactor of each exchange; has no state that a request changes, except the lines in
// which calls with large answers wait.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/repeated_problem.h"
#include "broker/broker.h"
#include "log/access_record.h"
#include "net/http_server.h"
#include "os/clock.h"
#include "service/answer_line.h"
#include "service/authenticator.h"
#include "service/call_figures.h"
#include "service/caller.h"
#include "service/http_answer.h"
#include "service/reactor_loop.h"
#include "wire/decode.h"

namespace stanchion::service {

struct EndpointOptions {
  std::string public_url;        // Pins the beginning of queue URLs; empty: as the client called.
  bool trust_forwarded = false;  // A proxy in front says with X-Forwarded-* what the client called.
  std::string only_region;       // The region that every ARN is taken to mean; empty: its own.
  bool strict = false;           // Actions that SQS does not have are unknown.
  // Writes a line to the log; any thread. None: nobody wants to know.
  std::function<void(const std::string&)> warn = nullptr;
};

class SqsEndpoint final : public net::HttpHandler {
 public:
  // All arguments must outlive the endpoint; `loops` has one per reactor, by its index. An empty
  // `access_log` logs nothing.
  SqsEndpoint(EndpointOptions options, broker::Broker& broker, Authenticator& authenticator,
              os::Clock& clock, std::vector<std::unique_ptr<ReactorLoop>>& loops,
              CallFigures& figures, log::AccessLog access_log = nullptr);

  // The port that the server listens on, for queue URLs of callers that name no host. Any thread.
  void set_port(std::uint16_t port) { port_ = port; }

  void handle(net::Exchange exchange) override;
  // A call of the JSON protocol whose caller is known by other means than a signature.
  void handle_as(net::Exchange exchange, Caller caller, FinishAnswer finish);
  net::HttpResponse refuse(const net::HttpRequest& request, int status,
                           std::string_view reason) override;

 private:
  struct Call;

  // `known`: the caller, if it need not be identified.
  void take(net::Exchange exchange, Caller* known, FinishAnswer finish = nullptr);
  // To what the figures of all shards say of the caller's queues.
  void give_advice(std::shared_ptr<Call> call, const StanchionAdvice& request);
  // At once, or when it is its turn among the calls with large answers.
  void execute(std::shared_ptr<Call> call, Request&& request);
  void execute_now(std::shared_ptr<Call> call, Request&& request);
  broker::Guard guard_of(const std::shared_ptr<Call>& call, const std::optional<QueueRef>& queue,
                         const Request& request, std::optional<Error> refusal);
  void refuse_call(Call& call, const Error& error);
  void answer_reply(Call& call, const Reply& reply);
  void warn(const std::string& text);
  void answer(Call& call, wire::HttpAnswer answer, std::optional<ErrorCode> error);
  std::string base_url_of(const net::HttpRequest& request) const;

  const EndpointOptions options_;
  broker::Broker& broker_;
  Authenticator& authenticator_;
  os::Clock& clock_;
  std::vector<std::unique_ptr<ReactorLoop>>& loops_;
  CallFigures& figures_;
  std::deque<AnswerLine> lines_;  // By the index of the reactor.
  const log::AccessLog access_log_;
  std::atomic<std::uint16_t> port_{0};
  std::mutex warnings_mutex_;
  RepeatedProblem warnings_;  // About policies; guarded by warnings_mutex_.
};

}  // namespace stanchion::service

// The CloudWatch endpoint, on the port of SQS: an HTTP exchange becomes a call, is executed on the
// history of the queues, away from the loops, and its result becomes the answer.
//
//   exchange ─▶ who calls? ─▶ decode ─▶ the history's thread: execute in turns, encode ─▶ answer
//
// Every key of an account may read the metrics of the account's queues, and of no others: accounts
// have no policies of their own here, and those of queues do not speak of CloudWatch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "monitoring/history_keeper.h"
#include "net/http_server.h"
#include "os/timekeeper.h"
#include "service/authenticator.h"
#include "service/call_figures.h"
#include "service/reactor_loop.h"
#include "service/sqs_endpoint.h"
#include "wire/cloudwatch_decode.h"

namespace stanchion::monitoring {

class CloudwatchEndpoint {
 public:
  // All arguments must outlive the endpoint; `loops` has one per reactor, by its index. An empty
  // `access_log` logs nothing.
  CloudwatchEndpoint(HistoryKeeper& history, service::Authenticator& authenticator, os::Time& time,
                     std::vector<std::unique_ptr<service::ReactorLoop>>& loops,
                     service::CallFigures& figures, log::AccessLog access_log);

  // The protocol, if the request is for CloudWatch.
  static std::optional<wire::CloudwatchProtocol> detect(const net::HttpRequest& request);

  // On the reactor of the exchange.
  void handle(net::Exchange exchange, wire::CloudwatchProtocol protocol);
  // The same for a call without a signature, of somebody who is known.
  void handle_as(net::Exchange exchange, wire::CloudwatchProtocol protocol,
                 const service::Caller& caller, service::FinishAnswer finish);

 private:
  struct Call;

  void take(net::Exchange exchange, wire::CloudwatchProtocol protocol, const service::Caller* known,
            service::FinishAnswer finish = nullptr);
  void execute(const std::shared_ptr<Call>& call);
  void refuse(Call& call, const Error& error);
  void answer(Call& call, wire::HttpAnswer answer, std::optional<ErrorCode> error);

  HistoryKeeper& history_;
  service::Authenticator& authenticator_;
  os::Time& time_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  service::CallFigures& figures_;
  const log::AccessLog access_log_;
};

}  // namespace stanchion::monitoring

#include "monitoring/cloudwatch_endpoint.h"

#include <chrono>
#include <string>
#include <utility>

#include "cloudwatch/execute.h"
#include "service/http_answer.h"
#include "wire/cloudwatch_encode.h"

namespace stanchion::monitoring {
namespace {

constexpr std::string_view kSigningService = "monitoring";

Error unavailable(std::string_view why) {
  return {ErrorCode::kServiceUnavailable, std::string(why)};
}

}  // namespace

struct CloudwatchEndpoint::Call {
  Call(net::Exchange e, wire::CloudwatchProtocol p) : exchange(std::move(e)), protocol(p) {}

  net::Exchange exchange;
  const wire::CloudwatchProtocol protocol;
  const std::string request_id = service::new_request_id();
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  cloudwatch::Caller caller;
  std::optional<cloudwatch::Request> request;
  std::unique_ptr<cloudwatch::Executor> executor;  // On the history's thread.
  service::FinishAnswer finish;                    // None: the answer is complete.

  // For the access log.
  std::string peer;
  std::size_t request_bytes = 0;
};

CloudwatchEndpoint::CloudwatchEndpoint(HistoryKeeper& history,
                                       service::Authenticator& authenticator, os::Time& time,
                                       std::vector<std::unique_ptr<service::ReactorLoop>>& loops,
                                       service::CallFigures& figures, log::AccessLog access_log)
    : history_(history),
      authenticator_(authenticator),
      time_(time),
      loops_(loops),
      figures_(figures),
      access_log_(std::move(access_log)) {}

std::optional<wire::CloudwatchProtocol> CloudwatchEndpoint::detect(
    const net::HttpRequest& request) {
  return wire::detect_cloudwatch(
      request.target, [&](std::string_view name) { return request.header(name).value_or(""); },
      request.body);
}

void CloudwatchEndpoint::handle(net::Exchange exchange, wire::CloudwatchProtocol protocol) {
  take(std::move(exchange), protocol, nullptr);
}

void CloudwatchEndpoint::handle_as(net::Exchange exchange, wire::CloudwatchProtocol protocol,
                                   const service::Caller& caller, service::FinishAnswer finish) {
  take(std::move(exchange), protocol, &caller, std::move(finish));
}

void CloudwatchEndpoint::take(net::Exchange exchange, wire::CloudwatchProtocol protocol,
                              const service::Caller* known, service::FinishAnswer finish) {
  auto call = std::make_shared<Call>(std::move(exchange), protocol);
  call->finish = std::move(finish);
  const net::HttpRequest& http = call->exchange.request();
  call->request_bytes = http.body.size();
  call->peer = http.peer.address;
  const bool may_get = protocol == wire::CloudwatchProtocol::kQuery;
  if (http.method != "POST" && !(may_get && http.method == "GET")) {
    net::HttpResponse response(405);
    response.add_header("Allow", may_get ? "GET, POST" : "POST");
    return call->exchange.answer(std::move(response));
  }
  std::vector<wire::HeaderView> headers;
  for (const net::HttpHeader& header : http.headers)
    headers.emplace_back(header.name, header.value);
  const wire::HttpCall view{http.method, http.target, headers, http.body};
  service::Caller signer;
  if (known == nullptr) {
    if (const auto error = authenticator_.identify(view, http, call->exchange.reactor().index(),
                                                   signer, kSigningService))
      return refuse(*call, *error);
    known = &signer;
  }
  call->caller = {known->account, known->region};
  auto request = wire::decode_cloudwatch(view, protocol);
  if (!request) return refuse(*call, request.error());
  call->request = *std::move(request);
  call->exchange.forget_request();
  if (!call->exchange.hold(call->request_bytes))
    return refuse(*call, unavailable("Too many calls are in progress; try again."));
  execute(call);
}

void CloudwatchEndpoint::execute(const std::shared_ptr<Call>& call) {
  broker::Loop& loop = *loops_[call->exchange.reactor().index()];
  call->executor =
      std::make_unique<cloudwatch::Executor>(*call->request, call->caller, time_.read().now);
  const auto turn = [this, call, &loop](const history::History* history) -> QuestionLine::Turn {
    const auto reply = [&](wire::HttpAnswer answer, std::optional<ErrorCode> error) {
      loop.post([this, call, answer = std::move(answer), error]() mutable {
        this->answer(*call, std::move(answer), error);
      });
    };
    const auto refuse_with = [&](const Error& error) {
      reply(wire::encode_cloudwatch_error(error, call->protocol, call->request_id), error.code);
    };
    if (history == nullptr) {
      refuse_with(unavailable("The history of the queues is not available at the moment."));
      return {};
    }
    const auto result = call->executor->advance(*history);
    if (!result) return {.more = true, .held = call->executor->held()};
    if (*result)
      reply(wire::encode_cloudwatch(**result, cloudwatch::name_of(*call->request), call->protocol,
                                    call->request_id),
            std::nullopt);
    else
      refuse_with(result->error());
    return {.failure = call->executor->failure()};
  };
  if (!history_.ask(call->caller.account, turn))
    refuse(*call, unavailable("The history accepts no more calls at the moment; try again."));
}

void CloudwatchEndpoint::refuse(Call& call, const Error& error) {
  answer(call, wire::encode_cloudwatch_error(error, call.protocol, call.request_id), error.code);
}

void CloudwatchEndpoint::answer(Call& call, wire::HttpAnswer answer,
                                std::optional<ErrorCode> error) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - call.began);
  const std::size_t row = call.request ? service::CallFigures::row_of(*call.request)
                                       : service::CallFigures::row_of(std::nullopt);
  figures_.note(call.exchange.reactor().index(), row, error, took);
  if (access_log_)
    access_log_({.peer = call.peer,
                 .account = call.caller.account,
                 .action = call.request ? cloudwatch::name_of(*call.request) : std::string_view(),
                 .queue = {},
                 .error = error ? info_of(*error).query_code : std::string_view(),
                 .request_id = call.request_id,
                 .status = answer.status,
                 .request_bytes = call.request_bytes,
                 .response_bytes = answer.body.size(),
                 .took = took});
  net::HttpResponse response = service::to_response(std::move(answer));
  if (call.protocol == wire::CloudwatchProtocol::kCbor)
    response.add_plain_header(wire::kSmithyProtocolHeader, wire::kSmithyCbor);
  if (call.finish) call.finish(response);
  call.exchange.answer(std::move(response));
}

}  // namespace stanchion::monitoring

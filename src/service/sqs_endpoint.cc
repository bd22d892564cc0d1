#include "service/sqs_endpoint.h"

#include <fmt/format.h>

#include "base/text.h"
#include "broker/routing.h"
#include "policy/warnings.h"
#include "service/advice.h"
#include "service/authorizer.h"
#include "service/call_guard.h"
#include "service/forwarded.h"
#include "service/home_region.h"
#include "service/page_guard.h"
#include "service/policy_texts.h"
#include "wire/encode.h"
#include "wire/query_decode.h"

namespace stanchion::service {
namespace {

// Whether answers to the action name queues by their URLs.
bool tells_urls(Action action) {
  return action == Action::kCreateQueue || action == Action::kGetQueueUrl ||
         action == Action::kListQueues || action == Action::kListDeadLetterSourceQueues ||
         action == Action::kStanchionAdvice;
}

void set_sender(Request& request, const std::string& sender) {
  if (auto* send = std::get_if<SendMessage>(&request)) send->sender_id = sender;
  if (auto* batch = std::get_if<SendMessageBatch>(&request)) batch->sender_id = sender;
}

std::optional<ErrorCode> code_of_status(int status) {
  if (status == 413) return ErrorCode::kRequestEntityTooLarge;
  if (status == 503) return ErrorCode::kServiceUnavailable;
  return std::nullopt;
}

// Methods that SQS does not use must not act as calls.
std::optional<net::HttpResponse> answer_method(const net::HttpRequest& request) {
  if (request.method == "POST" || request.method == "GET") return std::nullopt;
  net::HttpResponse response(request.method == "OPTIONS" ? 204 : 405);
  response.add_header("Allow", "GET, POST, OPTIONS");
  return response;
}

// What the proxy in front reports about its client.
void take_forwarded(const net::HttpRequest& http, Caller& caller) {
  const std::string_view scheme = forwarded_scheme(http);
  if (!scheme.empty()) caller.secure = scheme == "https";
  const std::string_view address = forwarded_address(http);
  if (!address.empty()) caller.source_ip = address;
}

// So many policies are set by hand, or for the first time by a program, with a line for each.
constexpr int kPolicyWarningsAtOnce = 20;

// A line for the log; empty if nothing looks wrong.
std::string warning_about_policy(const Request& request) {
  const std::vector<std::string> all = warnings_about_new_policy(request);
  if (all.empty()) return {};
  return fmt::format("the policy of {} looks wrong: {}", broker::queue_of(request)->arn(),
                     policy::summary_of(all));
}

// An extension of an action that SQS has.
bool chooses_messages(const Request& request) {
  const auto* receive = std::get_if<ReceiveMessage>(&request);
  return receive != nullptr && !receive->positions.empty();
}

// How many places of the line (answer_line.h) a call needs; 0: its answer is small, or a receive's,
// which is bounded otherwise. Advice looks at all queues.
std::size_t places_of(Action action) {
  if (action == Action::kStanchionAdvice) return AnswerLine::kPlaces;
  const bool large = action == Action::kListQueues ||
                     action == Action::kListDeadLetterSourceQueues ||
                     action == Action::kListQueueTags || action == Action::kStanchionPeek ||
                     action == Action::kStanchionGroups;
  return large ? 1 : 0;
}

// The memory that a receive keeps until it is answered: the names, here and in the shard.
std::size_t bytes_of(const ReceiveMessage& receive) {
  std::size_t bytes = 0;
  for (const auto* names :
       {&receive.attribute_names, &receive.message_attribute_names, &receive.positions})
    for (const std::string& name : *names) bytes += sizeof(std::string) + name.capacity();
  return 2 * bytes;
}

// The request is decoded, so the memory of its bytes is freed, and what is kept instead is counted.
// False if there is no room for a call that may wait.
bool keep_no_more_than(net::Exchange& exchange, const Request& request) {
  const auto* receive = std::get_if<ReceiveMessage>(&request);
  const std::size_t kept = receive ? bytes_of(*receive) : exchange.request().body.size();
  exchange.forget_request();
  const bool fits = exchange.hold(kept);
  return fits || (receive == nullptr && places_of(action_of(request)) == 0);
}

}  // namespace

// One call under way: the exchange, and what its answer needs besides the reply.
struct SqsEndpoint::Call {
  explicit Call(net::Exchange e) : exchange(std::move(e)) {}

  net::Exchange exchange;
  std::string request_id = new_request_id();
  wire::Protocol protocol = wire::Protocol::kJson;
  Caller caller;
  std::optional<Action> action;
  std::unique_ptr<Request> selection;  // The attributes that a receive asked for.
  std::string base_url;                // For replies that name queues by URLs.
  std::size_t places = 0;              // That it has in the line of its reactor.
  std::string warning;                 // For the log, if the call succeeds.
  FinishAnswer finish;                 // None: the answer is complete.

  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

  // For the access log.
  std::string peer;
  std::string queue;
  std::size_t request_bytes = 0;
};

SqsEndpoint::SqsEndpoint(EndpointOptions options, broker::Broker& broker,
                         Authenticator& authenticator, os::Clock& clock,
                         std::vector<std::unique_ptr<ReactorLoop>>& loops, CallFigures& figures,
                         log::AccessLog access_log)
    : options_(std::move(options)),
      broker_(broker),
      authenticator_(authenticator),
      clock_(clock),
      loops_(loops),
      figures_(figures),
      access_log_(std::move(access_log)),
      warnings_([this](std::string_view text) { options_.warn(std::string(text)); },
                "{} more suspicious policies were set: stanchion advise names their queues",
                kPolicyWarningsAtOnce) {
  for (const auto& loop : loops_)
    lines_.emplace_back([to = loop.get()](net::Task task) { to->post(std::move(task)); });
}

// Whoever may set attributes can do so again and again.
void SqsEndpoint::warn(const std::string& text) {
  const std::lock_guard lock(warnings_mutex_);
  warnings_.say(text, std::chrono::steady_clock::now());
}

// Queue URLs carry the host that the client used, so that the client reaches this server again.
std::string SqsEndpoint::base_url_of(const net::HttpRequest& request) const {
  if (!options_.public_url.empty()) return options_.public_url;
  std::string_view scheme = request.peer.tls ? "https" : "http";
  std::string_view host = request.header("Host").value_or("");
  if (options_.trust_forwarded) {
    if (const auto called = forwarded_host(request); !called.empty()) host = called;
    if (const auto used = forwarded_scheme(request); used == "http" || used == "https")
      scheme = used;
  }
  // A host without a port means the scheme's default, as HTTP says: a proxy may listen there. Only
  // a call without any host must mean this server's own port.
  if (host.empty()) return fmt::format("{}://localhost:{}", scheme, port_.load());
  return fmt::format("{}://{}", scheme, host);
}

void SqsEndpoint::handle(net::Exchange exchange) {
  if (auto other = answer_method(exchange.request())) return exchange.answer(std::move(*other));
  take(std::move(exchange), nullptr);
}

void SqsEndpoint::handle_as(net::Exchange exchange, Caller caller, FinishAnswer finish) {
  take(std::move(exchange), &caller, std::move(finish));
}

void SqsEndpoint::take(net::Exchange exchange, Caller* known, FinishAnswer finish) {
  auto call = std::make_shared<Call>(std::move(exchange));
  call->finish = std::move(finish);
  const net::HttpRequest& http = call->exchange.request();
  if (access_log_) {
    call->request_bytes = http.body.size();
    call->peer = http.peer.address;
  }
  // Reused from call to call, to save an allocation.
  thread_local std::vector<wire::HeaderView> headers;
  headers.clear();
  for (const net::HttpHeader& header : http.headers)
    headers.emplace_back(header.name, header.value);
  const wire::HttpCall view{http.method, http.target, headers, http.body};
  call->protocol = wire::detect(view);

  if (known != nullptr) {
    call->caller = std::move(*known);
  } else if (const auto error = authenticator_.identify(
                 view, http, call->exchange.reactor().index(), call->caller)) {
    return refuse_call(*call, *error);
  }
  if (options_.trust_forwarded) take_forwarded(http, call->caller);
  auto request = wire::decode(view, call->protocol, {call->caller.account, call->caller.region});
  if (!request) return refuse_call(*call, request.error());
  const Action action = action_of(*request);
  if (options_.strict && is_extension(action))
    return refuse_call(*call, wire::invalid_action(name_of(action)).error());
  if (options_.strict && chooses_messages(*request))
    return refuse_call(*call,
                       {ErrorCode::kInvalidParameterValue,
                        "Value for parameter StanchionPositions is invalid. Reason: SQS does "
                        "not have it, and this server runs with --strict."});
  call->action = action;
  if (!call->caller.verified)
    if (const auto error = PageGuard::check_action(view, action)) return refuse_call(*call, *error);
  if (!options_.only_region.empty()) bring_home(*request, options_.only_region);
  if (const auto error = find_elsewhere(*request, call->caller.region))
    return refuse_call(*call, *error);
  if (tells_urls(action)) call->base_url = base_url_of(http);
  if (!keep_no_more_than(call->exchange, *request))
    return refuse_call(*call,
                       {ErrorCode::kServiceUnavailable, "Too many calls are waiting; try again."});
  execute(std::move(call), std::move(*request));
}

// Null if there is nothing to check. The parts of the call that it refers to stay with it.
broker::Guard SqsEndpoint::guard_of(const std::shared_ptr<Call>& call,
                                    const std::optional<QueueRef>& queue, const Request& request,
                                    std::optional<Error> refusal) {
  // Where no accounts are configured nobody is verified, and everybody may do everything.
  const bool checked = call->caller.verified && queue && *call->action != Action::kCreateQueue;
  if (!checked && !refusal) return nullptr;
  return std::make_unique<CallGuard>(
      authenticator_, clock_,
      CallGuard::Call{
          .caller = checked ? std::shared_ptr<const Caller>(call, &call->caller) : nullptr,
          .action = *call->action,
          .queue = queue.value_or(QueueRef()),
          .tags = tags_of(request),
          .tag_keys = tag_keys_of(request),
          .refusal = std::move(refusal)});
}

void SqsEndpoint::execute(std::shared_ptr<Call> call, Request&& request) {
  const std::size_t places = places_of(*call->action);
  if (places == 0) return execute_now(std::move(call), std::move(request));
  AnswerLine& line = lines_[call->exchange.reactor().index()];
  line.enter(places, [this, &line, places, call, request = std::move(request)]() mutable {
    if (call->exchange.cut_off()) return line.leave(places);
    call->places = places;
    execute_now(std::move(call), std::move(request));
  });
}

void SqsEndpoint::execute_now(std::shared_ptr<Call> call, Request&& request) {
  const Action action = *call->action;
  const auto bad_policy = check_new_policy(request);
  if (bad_policy && action == Action::kCreateQueue) return refuse_call(*call, *bad_policy);
  if (options_.warn) call->warning = warning_about_policy(request);
  const auto queue =
      call->caller.verified || access_log_ ? broker::queue_of(request) : std::optional<QueueRef>();
  if (call->caller.verified) {
    if (const auto error = authorize_by_account(call->caller, action, queue))
      return refuse_call(*call, *error);
    if (const auto error = authorize_destination(call->caller, request))
      return refuse_call(*call, *error);
  }
  if (action == Action::kStanchionAdvice)
    return give_advice(std::move(call), std::get<StanchionAdvice>(request));
  broker::Guard guard = guard_of(call, queue, request, bad_policy);
  set_sender(request, call->caller.sender_id);
  if (const auto* receive = std::get_if<ReceiveMessage>(&request)) {
    ReceiveMessage selection;
    selection.attribute_names = receive->attribute_names;
    selection.message_attribute_names = receive->message_attribute_names;
    call->selection = std::make_unique<Request>(std::move(selection));
  }
  if (access_log_ && queue) call->queue = queue->name;

  broker::Loop& loop = *loops_[call->exchange.reactor().index()];
  const broker::Submission submission = broker_.submit(
      loop, std::move(request), [this, call](Reply reply) { answer_reply(*call, reply); },
      std::move(guard));
  if (action == Action::kReceiveMessage && !call->exchange.answered())
    call->exchange.on_abandoned([this, submission] { broker_.cancel(submission); });
}

void SqsEndpoint::give_advice(std::shared_ptr<Call> call, const StanchionAdvice& request) {
  broker::Loop& loop = *loops_[call->exchange.reactor().index()];
  auto policies = std::make_shared<PolicyTexts>();
  broker_.collect(
      loop,
      {.queues =
           [request, policies](const engine::Queue& queue, Instant) {
             if (queue.ref.account != request.account || queue.ref.region != request.region)
               return false;
             policies->add(queue.ref, queue.attributes().policy);
             return true;
           },
       .purpose = broker::Purpose::kAdvice},
      [this, call, policies](const broker::Figures& figures) {
        Advised advised = advise(figures.shards, policies->take(), call->base_url);
        answer_reply(*call, StanchionAdviceResult{.advice = std::move(advised.advice),
                                                  .left_out = advised.left_out});
      });
}

// The HTTP server refuses requests before they are known to be calls of SQS. If one looks like a
// call, it is refused in its own protocol, so that SDKs find an error name and not just a status.
net::HttpResponse SqsEndpoint::refuse(const net::HttpRequest& request, int status,
                                      std::string_view reason) {
  const auto code = code_of_status(status);
  const std::string_view type = request.header("Content-Type").value_or("");
  if (!code || (!wire::is_json_type(type) && !wire::is_form_type(type)))
    return HttpHandler::refuse(request, status, reason);
  const std::string id = new_request_id();
  const auto protocol = wire::is_json_type(type) ? wire::Protocol::kJson
                        : wire::accepts_json(request.header("Accept").value_or(""))
                            ? wire::Protocol::kQueryJson
                            : wire::Protocol::kQuery;
  return to_response(wire::encode_error({*code, std::string(reason)}, protocol, {id, {}}));
}

void SqsEndpoint::refuse_call(Call& call, const Error& error) {
  answer(call, wire::encode_error(error, call.protocol, {call.request_id, {}}), error.code);
}

void SqsEndpoint::answer_reply(Call& call, const Reply& reply) {
  // A receive that waited while the first accounts were configured: its caller is unknown.
  if (*call.action == Action::kReceiveMessage && !call.caller.verified && authenticator_.has_keys())
    return refuse_call(
        call, {ErrorCode::kMissingAuthenticationToken, "Request is missing Authentication Token"});
  if (reply && !call.warning.empty()) warn(call.warning);
  // An answer of megabytes takes milliseconds and memory, also if nobody gets it.
  if (reply && call.exchange.cut_off()) return answer(call, {}, std::nullopt);
  static const Request kNoSelection;
  answer(call,
         wire::encode(reply, *call.action, call.selection ? *call.selection : kNoSelection,
                      call.protocol, {call.request_id, call.base_url}),
         reply ? std::nullopt : std::optional(reply.error().code));
}

void SqsEndpoint::answer(Call& call, wire::HttpAnswer answer, std::optional<ErrorCode> error) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - call.began);
  figures_.note(call.exchange.reactor().index(), CallFigures::row_of(call.action), error, took);
  if (access_log_)
    access_log_({.peer = call.peer,
                 .account = call.caller.account,
                 .action = call.action ? name_of(*call.action) : std::string_view(),
                 .queue = call.queue,
                 .error = error ? info_of(*error).query_code : std::string_view(),
                 .request_id = call.request_id,
                 .status = answer.status,
                 .request_bytes = call.request_bytes,
                 .response_bytes = answer.body.size(),
                 .took = took});
  net::HttpResponse response = to_response(std::move(answer));
  if (call.finish) call.finish(response);
  if (const std::size_t places = std::exchange(call.places, 0); places > 0)
    lines_[call.exchange.reactor().index()].leave(places);
  call.exchange.answer(std::move(response));
}

}  // namespace stanchion::service

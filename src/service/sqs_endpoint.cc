#include "service/sqs_endpoint.h"

#include <fmt/format.h>

#include <random>

#include "base/text.h"
#include "wire/encode.h"

namespace stanchion::service {
namespace {

// Names the request in answers and logs; nobody relies on it being unguessable.
std::string new_request_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const std::uint64_t halves[2] = {random(), random()};
  std::array<std::uint8_t, 16> bytes;
  std::memcpy(bytes.data(), halves, sizeof halves);
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  return format_uuid(bytes);
}

// Queue URLs carry the host that the client used to get here.
std::string base_url_of(const net::HttpRequest& request) {
  const auto host = request.header("Host");
  return fmt::format("{}://{}", request.peer.tls ? "https" : "http",
                     host && !host->empty() ? *host : "localhost");
}

net::HttpResponse to_response(wire::HttpAnswer answer) {
  net::HttpResponse response(answer.status, std::move(answer.body));
  response.add_header(wire::kRequestIdHeader, answer.request_id);
  if (!answer.query_error.empty()) response.add_header(wire::kQueryErrorHeader, answer.query_error);
  if (!answer.content_type.empty()) response.add_header("Content-Type", answer.content_type);
  return response;
}

void set_sender(Request& request, const std::string& sender) {
  if (auto* send = std::get_if<SendMessage>(&request)) send->sender_id = sender;
  if (auto* batch = std::get_if<SendMessageBatch>(&request)) batch->sender_id = sender;
}

}  // namespace

// One call under way: the exchange and what its answer needs besides the reply.
struct SqsEndpoint::Call {
  explicit Call(net::Exchange e) : exchange(std::move(e)) {}

  wire::ReplyContext context() const { return {request_id, base_url}; }

  net::Exchange exchange;
  std::string request_id = new_request_id();
  std::string base_url = base_url_of(exchange.request());
  Request selection;  // What a receive asked to see of its messages.
};

SqsEndpoint::SqsEndpoint(EndpointOptions options, broker::Broker& broker,
                         std::vector<std::unique_ptr<ReactorLoop>>& loops)
    : options_(std::move(options)), broker_(broker), loops_(loops) {}

void SqsEndpoint::handle(net::Exchange exchange) {
  const net::HttpRequest& http = exchange.request();
  const std::string_view path = http.target.substr(0, http.target.find('?'));
  if (http.method == "GET" && path.starts_with("/health"))
    return answer_health(std::move(exchange), path);

  auto call = std::make_shared<Call>(std::move(exchange));
  const net::HttpRequest& request = call->exchange.request();
  std::vector<wire::HeaderView> headers;
  headers.reserve(request.headers.size());
  for (const net::HttpHeader& header : request.headers)
    headers.emplace_back(header.name, header.value);
  const wire::HttpCall view{request.method, request.target, headers, request.body};

  auto decoded = wire::decode(view, {options_.account, options_.region});
  if (!decoded)
    return call->exchange.answer(
        to_response(wire::encode_error(decoded.error(), wire::detect(view), call->context())));
  execute(std::move(call), std::move(*decoded));
}

void SqsEndpoint::execute(std::shared_ptr<Call> call, wire::Decoded decoded) {
  set_sender(decoded.request, options_.account);
  if (const auto* receive = std::get_if<ReceiveMessage>(&decoded.request)) {
    ReceiveMessage selection;
    selection.attribute_names = receive->attribute_names;
    selection.message_attribute_names = receive->message_attribute_names;
    call->selection = std::move(selection);
  }
  const Action action = decoded.action;
  const wire::Protocol protocol = decoded.protocol;
  broker::Loop& loop = *loops_[call->exchange.reactor().index()];
  const broker::Submission submission =
      broker_.submit(loop, std::move(decoded.request), [call, action, protocol](Reply reply) {
        call->exchange.answer(
            to_response(wire::encode(reply, action, call->selection, protocol, call->context())));
      });
  if (action == Action::kReceiveMessage && !call->exchange.answered())
    call->exchange.on_abandoned([this, submission] { broker_.cancel(submission); });
}

void SqsEndpoint::answer_health(net::Exchange exchange, std::string_view path) {
  const bool known = path == "/health" || path == "/health/live" || path == "/health/ready";
  net::HttpResponse response(known ? 200 : 404, known ? "{\"status\":\"ok\"}\n" : "");
  response.add_header("Content-Type", "application/json");
  exchange.answer(std::move(response));
}

}  // namespace stanchion::service

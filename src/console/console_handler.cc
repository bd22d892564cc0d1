#include "console/console_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <utility>

#include "base/text.h"
#include "console/answer.h"
#include "console/assets.h"
#include "model/limits.h"
#include "service/page_guard.h"
#include "wire/query_parameters.h"

namespace stanchion::console {
namespace {

constexpr std::string_view kCookie = "stanchion_console";
constexpr std::string_view kConsoleHeader = "X-Stanchion-Console";
constexpr std::string_view kTimeHeader = "X-Stanchion-Time";  // In milliseconds since 1970.

net::HttpResponse plain(int status, std::string text) {
  net::HttpResponse response(status, std::move(text) + "\n");
  response.add_plain_header("Content-Type", "text/plain; charset=utf-8");
  response.add_plain_header("Cache-Control", "no-store");
  return response;
}

bool is_called_by_a_name_of_this_machine(const net::HttpRequest& request) {
  return service::names_loopback(service::name_of_host(request.header("Host").value_or("")));
}

// Browsers say who makes a request; one that comes from elsewhere than our own pages, or from the
// address bar, is refused.
bool is_cross_site(const net::HttpRequest& request) {
  const std::string_view site = request.header("Sec-Fetch-Site").value_or("same-origin");
  return site != "same-origin" && site != "none";
}

std::optional<std::string_view> cookie_of(const net::HttpRequest& request) {
  std::string_view rest = request.header("Cookie").value_or("");
  while (!rest.empty()) {
    std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(kCookie) && one.substr(kCookie.size()).starts_with('='))
      return one.substr(kCookie.size() + 1);
  }
  return std::nullopt;
}

// The session, which no script can read, and whether there is one, which the page shows. An empty
// token ends both.
void set_cookies(const net::HttpRequest& request, std::string_view token,
                 net::HttpResponse& response) {
  const bool secure =
      request.peer.tls || request.header("Origin").value_or("").starts_with("https:");
  const auto seconds = std::chrono::seconds(ConsoleSessions::kLasts).count();
  const std::string rest = fmt::format("; Path=/console; SameSite=Strict; Max-Age={}{}",
                                       token.empty() ? 0 : seconds, secure ? "; Secure" : "");
  response.add_header("Set-Cookie", fmt::format("{}={}; HttpOnly{}", kCookie, token, rest));
  response.add_header("Set-Cookie", "stanchion_signed_in=1" + rest);
}

}  // namespace

bool comes_from_own_page(const net::HttpRequest& request) {
  std::string_view origin = request.header("Origin").value_or("");
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) {
      origin.remove_prefix(scheme.size());
      const std::string_view host = request.header("Host").value_or("");
      return !host.empty() && equals_ignoring_ascii_case(origin, host) &&
             origin.size() == host.size() && !is_cross_site(request) &&
             request.header(kConsoleHeader).has_value();
    }
  return false;
}

ConsoleHandler::ConsoleHandler(const Routes& routes, SignIn& sign_ins,
                               service::Authenticator& authenticator, os::Entropy& entropy,
                               os::Time& time, std::string machine)
    : routes_(routes),
      sign_ins_(sign_ins),
      authenticator_(authenticator),
      time_(time),
      machine_(std::move(machine)),
      sessions_(entropy) {}

void ConsoleHandler::handle(net::Exchange exchange, std::string_view path) {
  const net::HttpRequest& request = exchange.request();
  if (!authenticator_.has_keys() && !is_called_by_a_name_of_this_machine(request))
    return exchange.answer(
        plain(403,
              "As long as no accounts are configured, the console is only for browsers on the "
              "server's machine: open http://localhost or http://127.0.0.1."));
  const bool posted = request.method == "POST";
  if (!posted && request.method != "GET") return exchange.answer(plain(405, "GET or POST"));
  const bool is_page =
      path != "/console/events" && path != "/console/server" && path != "/console/here";
  if (!posted && is_page) return answer_asset(std::move(exchange), path);
  if (posted ? !comes_from_own_page(request) : is_cross_site(request))
    return exchange.answer(console_refusal(403, "Only the console's own page may make this call."));
  if (path == "/console/events") return watch(std::move(exchange));
  if (path == "/console/here") return tell_where(std::move(exchange));
  if (path == "/console/server") return tell_of_server(std::move(exchange));
  if (path == "/console/api") return answer_call(std::move(exchange));
  if (path == "/console/sign-in") return sign_in(std::move(exchange));
  if (path == "/console/sign-out") return sign_out(std::move(exchange));
  exchange.answer(console_refusal(404, "There is no such page."));
}

void ConsoleHandler::answer_asset(net::Exchange exchange, std::string_view path) {
  if (path == "/console" || path == "/console/") path = "/console/index.html";
  const auto assets = console_assets();
  const auto found = std::ranges::find(assets, path, &ConsoleAsset::path);
  if (found == assets.end()) return exchange.answer(plain(404, "There is no such page."));
  const std::string_view accepts = exchange.request().header("Accept-Encoding").value_or("");
  if (accepts.find("gzip") == std::string_view::npos)
    return exchange.answer(plain(406, "The console is available with gzip compression only."));
  net::HttpResponse response(200, std::string(found->gzip));
  response.add_plain_header("Content-Type", found->type);
  response.add_plain_header("Content-Encoding", "gzip");
  response.add_plain_header("Cache-Control", "no-cache");
  response.add_plain_header("X-Content-Type-Options", "nosniff");
  response.add_plain_header("Referrer-Policy", "no-referrer");
  response.add_plain_header("Cross-Origin-Opener-Policy", "same-origin");
  response.add_plain_header("Cross-Origin-Resource-Policy", "same-origin");
  response.add_plain_header("Content-Security-Policy",
                            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
                            "'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
                            "frame-ancestors 'none'");
  exchange.answer(std::move(response));
}

std::optional<service::Caller> ConsoleHandler::caller_of(const net::HttpRequest& request) {
  if (!authenticator_.has_keys()) return authenticator_.caller_without_key();
  const auto token = cookie_of(request);
  if (!token) return std::nullopt;
  const auto who = sessions_.find(*token, Clock::now());
  if (!who) return std::nullopt;
  auto caller = authenticator_.caller_of(*who, request);
  if (!caller) sessions_.end(*token);
  return caller;
}

// Whether a session goes on.
bool ConsoleHandler::holds(std::string_view token) {
  const auto who = sessions_.find(token, Clock::now());
  if (!who) return false;
  if (authenticator_.is_still(*who)) return true;
  sessions_.end(token);
  return false;
}

void ConsoleHandler::answer_call(net::Exchange exchange) {
  auto caller = caller_of(exchange.request());
  if (!caller) return exchange.answer(console_refusal(401, "Sign in with an access key."));
  const auto finish = [this](net::HttpResponse& response) { add_time(response); };
  if (const auto protocol = monitoring::CloudwatchEndpoint::detect(exchange.request()))
    return routes_.cloudwatch.handle_as(std::move(exchange), *protocol, *caller, finish);
  routes_.sqs.handle_as(std::move(exchange), std::move(*caller), finish);
}

void ConsoleHandler::add_time(net::HttpResponse& response) {
  response.add_plain_header(kTimeHeader, fmt::format("{}", to_millis(time_.read().now)));
}

void ConsoleHandler::sign_in(net::Exchange exchange) {
  auto who = sign_ins_.receive(exchange);
  if (!who) return;
  net::HttpResponse response = console_answer(200, {});
  set_cookies(exchange.request(), sessions_.begin(*std::move(who), Clock::now()), response);
  exchange.answer(std::move(response));
}

void ConsoleHandler::sign_out(net::Exchange exchange) {
  if (const auto token = cookie_of(exchange.request())) sessions_.end(*token);
  net::HttpResponse response = console_answer(200, {});
  set_cookies(exchange.request(), "", response);
  exchange.answer(std::move(response));
}

void ConsoleHandler::watch(net::Exchange exchange) {
  const net::HttpRequest& request = exchange.request();
  auto caller = caller_of(request);
  // 204 tells the browser not to connect again.
  if (!caller) return exchange.answer(net::HttpResponse(204));
  const std::size_t mark = request.target.find('?');
  const auto parameters = wire::QueryParameters::parse(
      mark == std::string_view::npos ? "" : request.target.substr(mark + 1), "");
  const auto parameter = [&](std::string_view name) -> std::string {
    const std::string* found = parameters ? parameters->find(name) : nullptr;
    return found == nullptr ? "" : *found;
  };
  // What is longer than a name is in none, and cut it is still longer.
  QueueView view{caller->account, caller->region,
                 parameter("filter").substr(0, limits::kQueueNameSizeMax + 1),
                 queue_order(parameter("sort")), queue_choice(parameter("only"))};
  auto may_go_on = [this, verified = caller->verified,
                    token = std::string(cookie_of(request).value_or(""))] {
    return verified ? holds(token) : !authenticator_.has_keys();
  };
  if (routes_.events.watch(exchange, std::move(view), std::move(may_go_on))) return;
  exchange.answer(console_refusal(
      503, fmt::format("This account has {} open console pages, the most allowed: close some.",
                       QueueEvents::kStreamsPerAccountMax)));
}

void ConsoleHandler::tell_where(net::Exchange exchange) {
  const auto caller = caller_of(exchange.request());
  if (!caller) return exchange.answer(console_refusal(401, "Sign in with an access key."));
  boost::json::object here{
      {"account", caller->account}, {"region", caller->region}, {"machine", machine_}};
  if (caller->verified) {
    here["accessKeyId"] = caller->access_key_id;
    here["user"] = caller->user;
  }
  net::HttpResponse response = console_answer(200, here);
  add_time(response);
  exchange.answer(std::move(response));
}

// Where there are accounts, none of them runs the server, as far as it knows: so none sees its
// settings, nor the names of others' queues.
void ConsoleHandler::tell_of_server(net::Exchange exchange) {
  const auto caller = caller_of(exchange.request());
  if (!caller) return exchange.answer(console_refusal(401, "Sign in with an access key."));
  routes_.server.answer(std::move(exchange), caller->verified ? caller->account : "");
}

}  // namespace stanchion::console

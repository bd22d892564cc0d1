#include "console/sign_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "console/answer.h"
#include "service/forwarded.h"

namespace stanchion::console {
namespace {

namespace json = boost::json;

struct Given {
  std::string id;
  std::string secret;
};

// Empty where there is none.
Given parse(std::string_view body) {
  json::error_code error;
  const json::value value = json::parse(body, error);
  const json::object* const object = error ? nullptr : value.if_object();
  const auto text = [&](const char* name) -> std::string {
    const json::value* const member = object == nullptr ? nullptr : object->if_contains(name);
    return member != nullptr && member->is_string() ? std::string(member->as_string()) : "";
  };
  return {text("id"), text("secret")};
}

net::HttpResponse too_often(std::chrono::seconds wait) {
  net::HttpResponse response = console_refusal(
      429, fmt::format("Too many sign-ins have failed: try again in {} s.", wait.count()));
  response.add_plain_header("Retry-After", fmt::to_string(wait.count()));
  return response;
}

net::HttpResponse wrong_key() {
  return console_refusal(403, "This access key and secret do not belong together.");
}

}  // namespace

SignIn::SignIn(const service::Authenticator& authenticator,
               std::vector<std::unique_ptr<service::ReactorLoop>>& loops, bool trust_forwarded,
               Warn warn)
    : authenticator_(authenticator),
      loops_(loops),
      trust_forwarded_(trust_forwarded),
      warn_(std::move(warn)),
      held_back_(loops.size()) {}

std::optional<service::SignedIn> SignIn::receive(net::Exchange& exchange) {
  const net::HttpRequest& request = exchange.request();
  const auto refuse = [&](net::HttpResponse response) {
    exchange.answer(std::move(response));
    return std::nullopt;
  };
  if (request.body.size() > kBodyMax)
    return refuse(console_refusal(413, "A sign-in consists of an access key and its secret only."));
  const std::string_view forwarded = trust_forwarded_ ? service::forwarded_address(request) : "";
  const std::string address(forwarded.empty() ? request.peer.address : forwarded);
  const Clock::time_point now = Clock::now();
  if (const auto wait = guard_.wait_of_address(address, now); wait.count() > 0)
    return refuse(too_often(wait));
  const Given given = parse(request.body);
  if (const auto wait = guard_.wait_of_key(given.id, address, now); wait.count() > 0)
    return refuse(too_often(wait));
  if (auto who = authenticator_.sign_in(given.id, given.secret)) return who;

  // Somebody may have typed a secret into the wrong field: an id that is not known is not shown.
  const bool known = authenticator_.keys()->find(given.id) != nullptr;
  guard_.note_failure(address, known ? given.id : "", now);
  const auto wait =
      std::max(guard_.wait_of_address(address, now),
               known ? guard_.wait_of_key(given.id, address, now) : std::chrono::seconds(0));
  warn_(fmt::format(
      "a sign-in to the console failed: from {}, with {}{}", address,
      authenticator_.describe_failure(given.id),
      wait.count() > 0
          ? fmt::format("; too many have failed, the next one is accepted in {} s", wait.count())
          : ""));
  refuse_later(exchange);
  return std::nullopt;
}

void SignIn::refuse_later(net::Exchange& exchange) {
  const std::size_t reactor = exchange.reactor().index();
  HeldBack& held_back = held_back_[reactor];
  if (held_back.answers.size() >= kDelayedMax) return exchange.answer(wrong_key());
  exchange.forget_request();
  held_back.answers.push_back({Clock::now() + kDelay, std::move(exchange)});
  if (held_back.answers.size() > 1) return;  // The alarm is set for the first.
  if (!held_back.alarm)
    held_back.alarm = loops_[reactor]->make_alarm([this, &held_back] { answer_due(held_back); });
  held_back.alarm->set(kDelay);
}

void SignIn::answer_due(HeldBack& held_back) {
  const Clock::time_point now = Clock::now();
  while (!held_back.answers.empty() && held_back.answers.front().due <= now) {
    held_back.answers.front().exchange.answer(wrong_key());
    held_back.answers.pop_front();
  }
  if (!held_back.answers.empty())
    held_back.alarm->set(std::chrono::ceil<Duration>(held_back.answers.front().due - now));
}

}  // namespace stanchion::console

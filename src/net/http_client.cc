#include "net/http_client.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "net/client_call.h"

namespace stanchion::net {
namespace {

SteadyTime steady_now() {
  return std::chrono::steady_clock::now();
}

// Waits for an event of the call, or until its deadline.
Status wait_for(const ClientCall& call, SteadyTime now) {
  using std::chrono::milliseconds;
  // Rounded up, so that the deadline has passed when the wait ends.
  const auto left = std::chrono::ceil<milliseconds>(call.deadline() - now).count();
  const auto timeout =
      call.may_have_more() ? 0 : static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  pollfd watched{.fd = call.fd(),
                 .events = static_cast<short>(call.wants_write() ? POLLIN | POLLOUT : POLLIN),
                 .revents = 0};
  if (::poll(&watched, 1, timeout) < 0 && errno != EINTR) return fail("cannot wait", errno);
  return {};
}

}  // namespace

const std::string* ClientResponse::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
      headers, [&](const auto& h) { return equals_ignoring_ascii_case(h.first, name); });
  return found == headers.end() ? nullptr : &found->second;
}

HttpClient::HttpClient(ClientOptions options)
    : state_(std::make_unique<ClientState>(std::move(options))) {}

HttpClient::~HttpClient() = default;

Result<ClientResponse> HttpClient::call(ClientRequest request) {
  ClientCall call(*state_, std::move(request), steady_now());
  while (call.needs() != ClientCall::Needs::kNothing) {
    if (call.needs() == ClientCall::Needs::kAddresses) {
      auto addresses = resolve(call.host(), call.port());
      call.take_addresses(std::move(addresses), steady_now());
      continue;
    }
    RETURN_IF_FAILED(wait_for(call, steady_now()));
    call.advance(steady_now());
  }
  return call.take_result();
}

}  // namespace stanchion::net

// Keeps web pages out while there are no accounts. A page that somebody visits can make the browser
// call this machine, and without keys nothing else would stop it.
//
//   PG1  A page whose own name was made to resolve to this machine (DNS rebinding) may send any
//        request, but only with its own name as Host: so a call has to use one of the server's
//        names.
//   PG2  Any other page can send a request without a CORS preflight only if a form or an image
//        could send it. So a call that changes anything has to carry a header that needs a
//        preflight, which is never allowed here.
//   PG3  A call that says that it comes from a page is refused at once; nothing relies on pages
//        saying so.
//
// Every caller that uses one of the server's names may read, because a page cannot see the answer.
// Immutable, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/action.h"
#include "model/error.h"
#include "wire/http_call.h"

namespace stanchion::service {

struct PageGuardOptions {
  // The server's names besides those of loopback: "queues.example.com", "*.example.com", or "*" for
  // any. Without ports.
  std::vector<std::string> hosts = {};
  // Other machines may call: then addresses, and names that nobody can own on the internet, also
  // count as the server's. Anyone who could make such a name resolve to this machine can as well
  // call directly.
  bool open = false;
  bool trust_forwarded = false;  // X-Forwarded-Host is a name that the client used.
};

class PageGuard {
 public:
  explicit PageGuard(PageGuardOptions options = {});

  // The reason to refuse any call (PG1, PG3).
  std::optional<Error> check_call(const wire::HttpCall& call) const;

  // The additional reason to refuse a call of this action (PG2).
  static std::optional<Error> check_action(const wire::HttpCall& call, Action action);

  // Whether a Host header names this server.
  bool knows(std::string_view host) const;

 private:
  PageGuardOptions options_;
  bool any_ = false;
};

// The part of a Host header before the port; an IPv6 address without its brackets. Empty if the
// header is malformed.
std::string_view name_of_host(std::string_view host);

// Whether it is an address of IPv4 or IPv6, without brackets and port.
bool is_address(std::string_view name);

// Whether a name or address without a port is one of loopback.
bool names_loopback(std::string_view name);

}  // namespace stanchion::service

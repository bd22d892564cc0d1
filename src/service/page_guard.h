// Keeps web pages out while there are no accounts. A page that somebody visits can make the browser
// call this machine, and without keys nothing else would stop it.
//
//   PG1  A page under a name of its own that DNS was made to resolve to this machine may send
//       whatever it likes, but not another Host than its name: so a call has to be made under a
//       name of the server's.
//   PG2  Any other page can have a request sent without being asked first only if that has nothing
//       in it but what a form or an image could send. So what changes anything has to carry a
//       header that needs asking (a CORS preflight, which is never allowed here).
//   PG3  What says that it comes from a page is refused at once; nothing relies on it being said.
//
// Reading is left to every caller under a name of the server's, because a page cannot see the
// answer. Immutable, any thread.
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
  // Names of the server's besides those of loopback: "queues.example.com", "*.example.com", or "*"
  // for any. Without ports.
  std::vector<std::string> hosts = {};
  // Other machines may call: then also addresses, and names that nobody can own on the internet,
  // are the server's. Whoever could make such a name lead here can as well call directly.
  bool open = false;
  bool trust_forwarded = false;  // X-Forwarded-Host is a name that the client used.
};

class PageGuard {
 public:
  explicit PageGuard(PageGuardOptions options = {});

  // What is against any call (PG1, PG3).
  std::optional<Error> check_call(const wire::HttpCall& call) const;

  // What is against a call of this action (PG2), besides.
  static std::optional<Error> check_action(const wire::HttpCall& call, Action action);

  // Whether a Host header names this server.
  bool knows(std::string_view host) const;

 private:
  PageGuardOptions options_;
  bool any_ = false;
};

// The part of a Host header before the port; an IPv6 address without its brackets. Empty if it is
// no name and port at all.
std::string_view name_of_host(std::string_view host);

// Whether a name or address without a port is one of loopback.
bool names_loopback(std::string_view name);

}  // namespace stanchion::service

// Who is signed in to the console: each session is a random token that a browser holds as a cookie,
// and stands for one access key as it was then.
//
// Any thread may call. A session ends with its time, when its owner signs out, when its key is no
// longer what it was, or when its account begins too many others; a restart ends all.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "os/entropy.h"
#include "service/authenticator.h"

namespace stanchion::console {

class ConsoleSessions {
 public:
  using Now = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kLasts{60};
  // Of one account. Beyond that, the first of them to end is forgotten; those of others stay.
  static constexpr std::size_t kPerAccountMax = 100;

  explicit ConsoleSessions(os::Entropy& entropy) : entropy_(entropy) {}

  // The token of a new session.
  std::string begin(service::SignedIn who, Now now);
  // Who began a session that has not ended.
  std::optional<service::SignedIn> find(std::string_view token, Now now);
  void end(std::string_view token);

 private:
  struct Session {
    service::SignedIn who;
    Now ends;
  };

  os::Entropy& entropy_;
  std::mutex mutex_;
  // By a digest of the token, so that looking one up takes the same time however much of a guess is
  // right. Guarded by mutex_.
  std::map<std::string, Session, std::less<>> sessions_;
};

}  // namespace stanchion::console

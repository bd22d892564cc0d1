// The credentials that calls are signed with, fetched when they are needed and again before they
// expire.
//
//   none ─get()─▶ fetching ─▶ good ─5 min before they expire─▶ good, fetching ─▶ good
//                    │                                             │ failed: the old ones, until
//                    ▼ failed                                      ▼ they expire
//                  none, and the waiting calls get the error
//
// The keeper lives on the client's loop. The source is called on a separate thread, because it may
// block on a file, a container's endpoint or an instance's metadata service.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "base/time.h"
#include "client/credentials.h"

namespace stanchion::client {

class CredentialKeeper {
 public:
  // Runs a task on the loop, soon; any thread may call it.
  using Post = std::function<void(std::function<void()>)>;
  // `told` is called on the loop when a fetch that calls wait for has ended; with an error if there
  // are still no credentials.
  using Told = std::function<void(const Error* error)>;

  CredentialKeeper(CredentialsSource source, Post post, Told told);
  ~CredentialKeeper() { stop(); }
  CredentialKeeper(const CredentialKeeper&) = delete;
  CredentialKeeper& operator=(const CredentialKeeper&) = delete;

  // Credentials that are valid at `now`; null if they have to be fetched, after which `told` is
  // called.
  const Credentials* get(Instant now);

  // Waits for a fetch under way.
  void stop();

  // The number of credentials so far.
  std::uint64_t generation() const { return generation_; }
  // A server refused those of this generation: they are fetched again, unless that has already
  // happened.
  void refuse(std::uint64_t generation);

 private:
  bool is_good(Instant now) const;
  void fetch();
  void take(Outcome<Credentials> fetched);

  const CredentialsSource source_;
  const Post post_;
  const Told told_;
  std::optional<Credentials> credentials_;
  std::uint64_t generation_ = 0;
  Instant next_fetch_{};  // For credentials that are still valid; a failed fetch postpones it.
  Instant now_{};
  bool fetching_ = false;
  bool awaited_ = false;
  std::thread thread_;
};

}  // namespace stanchion::client

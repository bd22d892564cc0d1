// The credentials that calls are signed with, fetched when they are needed and again before they
// expire.
//
//   none ─get()─▶ fetching ─▶ good ─5 min before they expire─▶ good, fetching ─▶ good
//                    │                                             │ failed: the old ones, until
//                    ▼ failed                                      ▼ they expire
//                  none, and who waited is told why
//
// The keeper lives on the client's loop. The source is asked on a thread of its own, because it may
// wait for a file, a container's endpoint or the metadata of an instance.
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
  // `told` is called on the loop when a fetch that was waited for has ended; the error, if there
  // are no credentials still.
  using Told = std::function<void(const Error* error)>;

  CredentialKeeper(CredentialsSource source, Post post, Told told);
  ~CredentialKeeper() { stop(); }
  CredentialKeeper(const CredentialKeeper&) = delete;
  CredentialKeeper& operator=(const CredentialKeeper&) = delete;

  // Credentials that are good at `now`; null if they have to be fetched, of which `told` hears.
  const Credentials* get(Instant now);

  // Waits for a fetch that is under way.
  void stop();

  // Counts the credentials that there have been.
  std::uint64_t generation() const { return generation_; }
  // A server refused those of this generation: they are fetched again, unless that is done already.
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
  Instant next_fetch_{};  // Of credentials that are good still; a failed fetch puts it off.
  Instant now_{};
  bool fetching_ = false;
  bool awaited_ = false;
  std::thread thread_;
};

}  // namespace stanchion::client

// By what workers know that a message of the queue of periodic tasks is one of their own.
//
// Whoever may send to that queue could otherwise have any task posted, at any time that it names. So
// a worker that schedules a task signs its queue, name and time, and a worker that receives a message
// acts only if the signature is right. The workers of a queue need a key in common; none of them
// leads, and a worker that is started again must know what was signed before:
//
//   --cron-key FILE           a key a line: the first signs, all verify, so that a key can be changed
//                             while workers run
//   the secret access key     if it is one that lasts, and so is the same in all workers
//
// The signature is the deduplication id as well: who does not know the key cannot take a task's place
// in the queue before it is due.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/result.h"
#include "client/credentials.h"
#include "runner/cron.h"

namespace stanchion::runner {

inline constexpr const char* kSignatureAttribute = "stanchion.signature";
inline constexpr std::size_t kCronKeySizeMin = 16;
// Workers send a task within minutes. Whoever may receive from the queue can send one again that it has
// seen; by the queue's own note of when it was sent, that ends after this time. A worker that was away
// for days still gets what was sent in time, and a dead letter may be moved back within a day.
inline constexpr std::chrono::hours kSentWithin(24);

// Whether a task of this time was sent too late to be a worker's, by its attribute SentTimestamp.
bool was_sent_too_late(const std::string& time, const std::string& sent_millis);

class TaskSeal {
 public:
  // Of the text of a file.
  static Result<TaskSeal> of_lines(std::string_view text);
  // Fails if they are temporary: other workers have others, and so has this one later. Without a
  // secret, as for a server without accounts, everybody can sign.
  static Result<TaskSeal> of_credentials(const client::Credentials& credentials);

  // In hex.
  std::string sign(std::string_view queue, std::string_view task, std::string_view time) const;
  bool is_signed(std::string_view queue, std::string_view task, std::string_view time,
                 std::string_view signature) const;
  bool everybody_can_sign() const { return is_open_; }

 private:
  void add_key(std::string_view secret);

  std::vector<Sha256> keys_;
  bool is_open_ = false;
};

// The tasks of a cron.yaml, and the seal of the messages that stand for them.
struct SealedTasks {
  std::vector<PeriodicTask> tasks;
  TaskSeal seal;

  // Null if there is none of this name.
  const PeriodicTask* find(std::string_view name) const;
};

}  // namespace stanchion::runner

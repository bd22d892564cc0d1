// Finds queues by name, and makes those that are missing.
//
// Any thread may call. find_or_make() waits for the server if the name is new. No lock is held
// meanwhile: threads that need the same queue at the same time all make it, which makes it once.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "client/client.h"
#include "client/outcome.h"
#include "worker/publication.h"

namespace stanchion::worker {

// "orders-dead" for "orders", "orders-dead.fifo" for "orders.fifo".
std::string with_suffix(const std::string& queue_name, const std::string& suffix);

class NamedQueues {
 public:
  explicit NamedQueues(client::Client& client) : client_(client) {}

  // The queue's URL.
  client::Outcome<std::string> find_or_make(const QueueRecipe& recipe);
  // The queue was not there any more: the next call looks again.
  void forget(const std::string& queue_url);

 private:
  client::Outcome<std::string> look_up(const QueueRecipe& recipe);
  client::Outcome<std::string> make(const QueueRecipe& recipe);

  client::Client& client_;
  std::mutex mutex_;
  std::map<std::string, std::string> urls_;
};

}  // namespace stanchion::worker

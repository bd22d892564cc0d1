// Moves messages from the queues of many tenants into one queue of work, in fair shares, so that a
// tenant who sends a great many does not keep the others waiting.
//
//   tenants' queues ─receive─▶ in flight ─whose turn it is─▶ queue of work ─acknowledged─▶ deleted
//
// The queue of work is kept short: no more than `window` messages wait in it, and the rest waits in
// the tenants' queues, where each is next in its tenant's turn. Any thread may call.
//
//   DT1  A message is deleted from its queue only after the queue of work has acknowledged it.
//   DT2  A message arrives in a FIFO queue of work once, if it is moved again within five minutes:
//        its deduplication id is its message id.
//   DT3  Messages of a FIFO group are sent in order, one after the other.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/outcome.h"

namespace stanchion::worker {

struct TenantOptions {
  std::string queue_url = {};
  double weight = 1;    // Its share of the turns, relative to the other tenants that have messages.
  int priority = 0;     // Tenants with a higher priority go first, always.
  double rate_max = 0;  // Messages a second; 0: no limit.
};

struct DistributorOptions {
  std::vector<TenantOptions> tenants = {};
  std::string work_queue_url = {};
  // How many messages may wait in the queue of work: as many as its workers handle at a time.
  std::size_t window = 10;
  // How often a full queue of work is looked at.
  std::chrono::milliseconds look_every{50};
  // How soon a message comes again if the distributor dies. Less than the five minutes for which a
  // FIFO queue knows what it has accepted.
  std::chrono::seconds visibility{30};
  // Receives at the same time. With more tenants than this, receives do not wait for messages.
  std::size_t polls_max = 32;
  // Told what went wrong, in words for a person, on the distributor's thread or in its destructor.
  std::function<void(const std::string& what)> on_error = {};
};

struct TenantMetrics {
  std::string queue_url = {};
  std::uint64_t received = 0;
  std::uint64_t moved = 0;  // Acknowledged by the queue of work and deleted.
  std::uint64_t errors = 0;
  std::size_t in_flight = 0;
};

class MessageDistributor {
 public:
  // Asks every queue for its attributes, and begins. The client must outlive the distributor and
  // must not be moved.
  static client::Outcome<std::unique_ptr<MessageDistributor>> open(client::Client& client,
                                                                   DistributorOptions options);
  // Finishes what is being sent, and gives back the rest.
  ~MessageDistributor();
  MessageDistributor(const MessageDistributor&) = delete;
  MessageDistributor& operator=(const MessageDistributor&) = delete;

  std::vector<TenantMetrics> metrics() const;

 private:
  class Impl;
  explicit MessageDistributor(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stanchion::worker

// A random client: sends, receives, deletes and changes things at random, remembers its receipts,
// and repeats requests that got no answer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/reply.h"
#include "model/request.h"
#include "sim/plan.h"
#include "sim/random.h"
#include "sim/service.h"
#include "sim/world.h"

namespace stanchion::sim {

// State that all clients share: how many requests are left, and the numbers of messages.
struct Crowd {
  int requests_left = 0;
  std::uint64_t next_message = 1;
  std::uint64_t requests_made = 0;
  int busy = 0;  // Clients with a request under way or to come.
};

class Client {
 public:
  Client(World& world, Service& service, const Plan& plan, Crowd& crowd, int number);

  void begin();

 private:
  struct Receipt {
    std::string queue;
    std::string handle;
  };

  void think(Micros at_least = 0);
  void act();
  void make(Request request);
  void answered(const Request& request, const Reply* reply);
  void remember(const ReceiveMessage& request, const ReceiveMessageResult& result);
  void remember(const StanchionPeek& request, const StanchionPeekResult& result);
  void retry(const Request& request);

  const QueuePlan& some_queue();
  std::optional<Receipt> take_receipt(bool keep);

  Request send();
  Request send_batch();
  OutgoingMessage message_for(const QueuePlan& queue);
  Request receive();
  Request settle_receipts();
  Request change_visibility();
  Request wipe();
  Request change_settings();
  Request move_messages();
  Request look_around();
  Request choose();
  Request create(const QueuePlan& queue);

  World& world_;
  Service& service_;
  const Plan& plan_;
  Crowd& crowd_;
  const std::string name_;
  Random random_;
  std::deque<Receipt> receipts_;
  struct Sighting {
    std::string queue;
    std::string position;
  };
  std::deque<Sighting> sightings_;
  std::map<std::string, std::optional<std::string>> pages_;  // Where a look at a queue goes on.
  std::vector<std::string> tasks_;
  std::optional<Request> again_;  // To be tried again, because no answer came.
  std::map<std::string, std::deque<std::string>> deduplication_ids_;  // Used lately, by queue.
  std::map<std::string, std::deque<std::string>> attempt_ids_;
};

}  // namespace stanchion::sim

// What happens in every world, whatever serves it: queues are created, clients make their requests,
// and in the end, without faults, every queue is emptied and what comes out is compared with what
// must.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/auditor.h"
#include "sim/client.h"
#include "sim/plan.h"
#include "sim/service.h"
#include "sim/world.h"

namespace stanchion::sim {

class Game {
 public:
  // `stepped` is called after every event.
  Game(World& world, const Plan& plan, Auditor& auditor, Service& service,
       std::function<void()> stepped);

  void create_queues();
  // Until all clients have made all their requests.
  void let_clients_play();
  // After the faults: in some worlds messages are asked for at about the instant at which they expire.
  void receive_around_expiry();
  void empty_everything();

  void step();
  void wait(Micros time);
  // Without faults: the answer comes, sooner or later.
  Reply ask(const Request& request);
  // Calls `what` again and again until faults end, every `seconds` on average; 0: never.
  void every(int seconds, std::function<void()> what);
  void end_faults() { faults_ = false; }
  // Long waits are cut short by this: it makes time pass at once.
  void skip_by(std::function<void(Micros)> skip) { skip_ = std::move(skip); }

  Random& random() { return random_; }
  const Crowd& crowd() const { return crowd_; }

 private:
  struct Counts {
    std::uint64_t visible = 0, hidden = 0;
  };

  Reply ask_each_time(const std::function<Request()>& make);
  void wait_for_move_tasks();
  std::optional<Counts> counts(const std::string& name);
  void empty_queues();
  bool empty_once(const std::string& name);
  void wait_for_transit();
  void try_every_queue();

  World& world_;
  const Plan& plan_;
  Auditor& auditor_;
  Service& service_;
  const std::function<void()> stepped_;
  Random random_;
  Crowd crowd_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::uint64_t progress_at_ = 0;  // How many events there were at the last request of a client.
  bool faults_ = true;
  std::function<void(Micros)> skip_;
};

}  // namespace stanchion::sim

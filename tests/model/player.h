// Plays a sequence of operations on an engine and on the model, side by side.
//
// There is only one engine: it is its own neighbour and hands its transfers to itself, when the
// sequence says so. Every record that it writes is kept, so that a restart can replay them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/model/kept_store.h"
#include "tests/model/operation.h"
#include "tests/model/peek_check.h"
#include "tests/model/reference_model.h"

namespace stanchion::reference {

class Player {
 public:
  explicit Player(const Sequence& sequence);

  // What went wrong and at which operation; nullopt if engine and model agree to the end.
  std::optional<std::string> play();

 private:
  void step(const Operation& operation);
  Reply execute(const Request& request);
  engine::Decision decide();
  void keep_record();

  void create(const Operation& operation);
  void send(const Operation& operation);
  void receive(const Operation& operation);
  void delete_messages(const Operation& operation);
  void change(const Operation& operation);
  void move_task(const Operation& operation);
  void peek(const Operation& operation);
  void peek_page(const Operation& operation);
  void choose(const Operation& operation);
  Sighting sighting_of(const Operation& operation, const Pick& pick) const;
  Reply look(const Request& request);
  void tick(const Operation& operation);
  void restart();
  void deliver(std::int64_t most);
  std::optional<Transfer> hand_over(TransferNo& from);
  void settle(std::int64_t most);

  // The state replayed from all records, or from the last checkpoint and the records since.
  std::unique_ptr<engine::Engine> replayed() const;
  std::unique_ptr<engine::Engine> recovered() const;
  std::uint64_t fingerprint() const;

  void checkpoint();
  void collect(std::size_t messages);
  void make_durable();
  void evict(std::int64_t budget);
  // Makes all reads that the engine requested; for read-ahead, returns the state at the time of the
  // request.
  void read_all(engine::Engine& engine, Instant now) const;
  void advance(engine::Engine& engine, Instant now) const;
  void install_late();
  void bring_in(const QueueRef& queue);
  std::optional<std::string> handle_of(const Operation& operation, const Pick& pick) const;
  std::string entry_id(const Operation& operation, std::size_t index) const;
  void let_due_things_happen();
  void move_messages();
  std::size_t tasks_ended() const;
  void compare_moves(bool full);
  void compare();
  void compare_queue(const Queue& wanted, const engine::Queue& is) const;
  void compare_passages() const;
  void check_awakened();

  const Sequence& sequence_;
  std::unique_ptr<engine::Engine> engine_;
  Model model_;
  Instant now_;
  std::uint64_t draws_ = 0;
  bool full_ = false;  // The disk, during the operation.
  RecordWriter record_;
  std::vector<std::string> records_;
  KeptStore store_;
  bool collecting_ = false;  // The engine is assembling a checkpoint.
  struct Arrived {
    engine::ColdRead read;
    std::vector<engine::StoredMessage> found;
  };
  std::map<std::string, PeekWalk> walks_;  // By queue.
  std::vector<Sighting> sightings_;        // What whole peeks have shown, the latest last.
  std::vector<Arrived> late_;              // Reads that are installed after some other operations.
  std::set<std::string> receivable_;  // Queues that had something to receive before the operation.
};

}  // namespace stanchion::reference

// What SQS does, in the most obvious way: vectors and linear scans, no cleverness, nothing shared
// with the engine but the vocabulary.
//
// Each call passes what the engine was asked and what it answered. The model works out what the
// answer had to be, throws Mismatch if it was different, and otherwise takes the step itself. What
// only the engine can know (message ids, receipts, task handles, and which tenant of a fair queue
// comes next) is learned from the answer after it was found permissible.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/error.h"
#include "model/ids.h"
#include "model/reply.h"
#include "model/request.h"
#include "model/transfer.h"
#include "tests/model/operation.h"

namespace stanchion::reference {

// What the sequences of this process have covered, so that a test can tell whether they still cover
// everything that matters.
using Coverage = std::map<std::string, std::uint64_t, std::less<>>;
Coverage& coverage();
inline void note(const char* what) {
  ++coverage()[what];
}

class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An error that SQS may answer with; without a message where SQS does not fix one.
struct Expected {
  ErrorCode code;
  std::optional<std::string> message;
};

struct Message {
  enum class Where { kDelayed, kReady, kInFlight };

  std::uint64_t place = 0;      // In the order in which messages came into the queue.
  std::optional<MessageId> id;  // A redriven message has a new id, seen when it is received.
  std::optional<Seq> sequence_number;
  std::string body;
  std::string group;
  std::string deduplication_id;
  std::string source_arn;
  Instant sent;
  Instant entered;
  Instant retained_from;
  Instant due;
  Instant received;
  Instant first_received;
  std::uint32_t receive_count = 0;
  Where where = Where::kReady;
  bool came_back = false;  // It was on its way to another queue, which refused it.
  bool stays = false;      // Its dead-letter queue refused it, so it is delivered the next time.
};

struct Task {
  int number = 0;
  std::string handle;
  std::string destination;  // A queue's name; empty: where each message came from.
  std::int64_t rate = 0;
  Instant started;
  Instant last_went;
  std::uint64_t to_move = 0;
  std::uint64_t moved = 0;
  std::uint64_t in_transit = 0;
  std::uint64_t went = 0;
  MoveTaskStatus status = MoveTaskStatus::kRunning;
  std::string failure;
};

struct Queue {
  struct Original {
    bool by_group = false;
    std::string group;
    std::string deduplication_id;
    MessageId id;
    std::optional<Seq> sequence_number;
    Instant expires;
  };
  struct Attempt {
    struct Item {
      std::uint64_t place = 0;
      std::uint32_t receive = 0;
      Instant due;
      std::string handle;
    };
    std::string id;
    std::vector<Item> items;
    Instant expires;
  };
  // A tenant that just arrived, and how often others were served while it waited.
  struct Newcomer {
    std::string group;
    std::map<std::string, int> served;
  };
  struct Redrive {
    std::string target;
    std::int64_t max_receive_count = 0;
    friend bool operator==(const Redrive&, const Redrive&) = default;
  };

  int number = 0;
  std::string name;
  bool fifo = false;
  std::int64_t visibility = 30;
  std::int64_t delay = 0;
  std::int64_t retention = 345'600;
  std::optional<Redrive> redrive;
  bool content_based = false;
  bool by_group = false;  // DeduplicationScope.
  Instant created;
  Instant modified;
  std::optional<Instant> purged;
  std::uint64_t next_place = 1;
  std::uint64_t first_kept = 1;  // Places below this one were purged.
  std::optional<Seq> last_sequence;
  std::vector<Message> messages;  // By place.
  std::vector<Original> originals;
  std::vector<Attempt> attempts;
  std::vector<Newcomer> newcomers;
  std::vector<std::string> line;  // FIFO: the groups that wait for a consumer, the next one first.
  std::vector<Task> tasks;

  std::string arn() const { return ref_of(name).arn(); }
  std::size_t count(Message::Where where) const;
  Message* at(std::uint64_t place);
  const Message* first_waiting(const std::string& group) const;
  Message take(std::uint64_t place);
  void put(Message message);
  bool is_dead_letter(const Message& message) const;
  void forget_newcomers();  // Those that have nothing waiting any more.
};

// A message between two queues.
struct Passage {
  enum class Verdict { kNone, kAccepted, kRefused };

  TransferNo number;
  Message message;
  int source = 0;  // The queue's number; that queue may be gone.
  std::string source_arn;
  std::string destination;
  TransferReason reason = TransferReason::kDeadLetter;
  int task = 0;
  bool arrived = false;
  Verdict verdict = Verdict::kNone;  // Of the destination; the source has not heard of it yet.
};

struct Receipt {
  std::string handle;
  std::string queue_name;
  int queue = 0;
  std::uint64_t place = 0;
  std::uint32_t receive = 0;
};

// A message as a peek has shown it.
struct Sighting {
  std::string position;
  std::string queue_name;
  int queue = 0;  // The queue's number; 0: no peek has shown it.
  std::uint64_t place = 0;
};

class Model {
 public:
  // One decision of the engine moves at most `decision_messages` from queue to queue.
  Model(bool strict, std::size_t decision_messages)
      : strict_(strict), decision_messages_(decision_messages) {}

  void advance(Instant now);
  // The disk is full: what is a dead letter is handed out once more.
  void set_nothing_leaves(bool nothing) { nothing_leaves_ = nothing; }

  void create(const std::string& name, const std::vector<Setting>& settings, const Reply& got);
  void remove(const std::string& name, const Reply& got);
  void purge(const std::string& name, const Reply& got);
  void set(const std::string& name, const std::vector<Setting>& settings, const Reply& got);
  void get(const std::string& name, const Reply& got);

  void send(const SendMessage& request, const Reply& got);
  void send(const SendMessageBatch& request, const Reply& got);
  void receive(const ReceiveMessage& request, const Reply& got, const std::vector<Transfer>& left);
  // `chosen` are the request's positions.
  void receive_chosen(const ReceiveMessage& request, const std::vector<Sighting>& chosen,
                      const Reply& got, const std::vector<Transfer>& left);
  void remove(const DeleteMessage& request, const Reply& got);
  void remove(const DeleteMessageBatch& request, const Reply& got);
  void change(const ChangeMessageVisibility& request, const Reply& got);
  void change(const ChangeMessageVisibilityBatch& request, const Reply& got);

  void start_move(const std::string& source, const std::optional<std::string>& destination,
                  std::optional<std::int64_t> rate, const Reply& got);
  void cancel_move(const std::optional<std::string>& handle, const Reply& got);
  void list_moves(const std::string& source, std::optional<std::int64_t> most, const Reply& got);

  // Running tasks did what their rate allows; these messages left, and this is the tasks' state
  // now. `full`: they will go on, because one decision does not move more.
  using TaskView = std::map<std::string, std::pair<MoveTaskStatus, std::string>>;
  void move(const std::vector<Transfer>& left, const TaskView& tasks, bool full);

  // The transfers between queues.
  void deliver(TransferNo number, TransferVerdict got);
  void settle(TransferNo number);
  void refuse(TransferNo number);
  void restarted();

  Instant now() const { return now_; }
  Queue* find(const std::string& name);
  const std::vector<Queue>& queues() const { return queues_; }
  const std::vector<Passage>& passages() const { return passages_; }
  const std::vector<Receipt>& receipts() const { return receipts_; }
  const std::vector<std::string>& task_handles() const { return task_handles_; }
  TransferNo next_transfer() const { return next_transfer_; }
  bool has_receivable(const Queue& queue) const;

 private:
  std::vector<Expected> wrong_settings(bool fifo, const std::vector<Setting>& settings) const;
  std::vector<Expected> wrong_target(bool fifo, const std::vector<Setting>& settings);
  static void apply(Queue& queue, const Setting& setting);

  std::vector<Expected> wrong_message(const Queue& queue, const OutgoingMessage& message) const;
  void enter(Queue& queue, const OutgoingMessage& message, const SentMessage& got);
  void arrive(Queue& queue, Message message);

  bool repeat(Queue& queue, const ReceiveMessage& request, Duration visibility, const Reply& got);
  // What a receive or a move has taken from a FIFO queue so far.
  struct Taken {
    std::string group;  // The last group; its further messages come next.
    std::set<std::uint64_t> places;
  };
  bool comes_after_one_away(const Queue& queue, const Message& message,
                            const std::set<std::uint64_t>& except) const;
  const Message* next(const Queue& queue, const Taken& taken) const;
  void keep_line(Queue& queue) const;
  bool let_next_thing_happen(Queue& queue) const;
  static bool one_lane(const Queue& queue);
  bool leaves(const Queue& queue, const Message& message) const {
    return !nothing_leaves_ && queue.is_dead_letter(message);
  }
  void depart(Queue& queue, std::uint64_t place, const std::string& destination,
              TransferReason reason, int task);
  std::vector<std::uint64_t> take_in_order(Queue& queue, std::size_t most, Instant due);
  std::vector<std::uint64_t> take_fairly(Queue& queue, std::size_t most, Instant due,
                                         const std::vector<ReceivedMessage>& got,
                                         const std::vector<Transfer>& left);
  std::vector<std::uint64_t> take_chosen(Queue& queue, const std::vector<Sighting>& chosen,
                                         Instant due);
  bool may_be_chosen(const Queue& queue, const Message& message,
                     const std::set<std::uint64_t>& taken) const;
  void take_one(Queue& queue, Message& message, Instant due);
  void check_fairness(Queue& queue, const std::string& served);
  void check_received(Queue& queue, Message& message, const ReceivedMessage& got);
  void compare_departures(std::size_t from, const std::vector<Transfer>& left) const;

  std::optional<Expected> delete_one(Queue& queue, const std::optional<std::string>& handle);
  std::optional<Expected> change_one(Queue& queue, const std::optional<std::string>& handle,
                                     std::int64_t timeout);
  const Receipt* find_receipt(const Queue& queue, const std::string& handle) const;

  void move_from(Queue& queue, Task& task, const std::vector<Transfer>& went, bool failed,
                 bool full);
  bool move_in_order(Queue& queue, Task& task, std::uint64_t quota, bool may_get_lost);
  void move_fairly(Queue& queue, Task& task, const std::vector<Transfer>& went, bool failed);
  Queue* find_number(int number);
  static Task* find_task(Queue& queue, int number);
  Passage& passage(TransferNo number);

  const bool strict_;
  const std::size_t decision_messages_;
  Instant now_;
  bool nothing_leaves_ = false;
  int next_queue_ = 1;
  int next_task_ = 1;
  std::vector<Queue> queues_;  // In the order of their creation.
  std::map<std::string, Instant> deleted_;
  std::vector<Passage> passages_;
  TransferNo next_transfer_{1};
  std::vector<Receipt> receipts_;
  std::set<std::string> handles_;
  std::set<MessageId> ids_;
  std::vector<std::string> task_handles_;
  std::map<std::string, std::string> task_sources_;  // The queue of each, which may be gone.
};

// Helpers of the model's parts.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw Mismatch(what);
}
std::string show(const Error& error);
bool matches(const Expected& expected, const Error& got);

// True if the request had to be refused and was, for one of these reasons; false if there are none
// and it was not.
bool refused(const std::vector<Expected>& reasons, const Reply& got);

template <class T>
const T& value_of(const Reply& got) {
  if (!got) throw Mismatch("refused: " + show(got.error()));
  const T* value = std::get_if<T>(&*got);
  if (value == nullptr) throw Mismatch("the reply is of another kind");
  return *value;
}

inline Expected no_queue() {
  return {ErrorCode::kQueueDoesNotExist, "The specified queue does not exist."};
}
Expected missing_parameter(const std::string& name);
Expected wrong_value(const std::string& value, const std::string& name, const std::string& reason);

}  // namespace stanchion::reference

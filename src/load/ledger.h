// Compares what was received with what was sent: makes the bodies of a run, and checks every
// answer.
//
// A body begins with the run, the queue, the group and a number that counts the messages of its
// queue, in hexadecimal: "1a2b3c-00000-00002a-0000f00d-", followed by a filler that is the same for
// all. So a received message identifies itself, and every byte of it can be checked.
//
//   LL1  A message counts as sent once the server has acknowledged it; one whose answer got lost
//        may or may not be received.
//   LL2  In a FIFO queue, the sequence numbers of a group's messages increase in the order in which
//       they are received for the first time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::load {

inline constexpr std::size_t kBodySizeMin = 29;
inline constexpr std::uint64_t kQueuesMax = 100'000;
inline constexpr std::uint64_t kGroupsMax = 10'000'000;
inline constexpr std::uint64_t kMessagesMax = 1'000'000'000;
static_assert(kQueuesMax <= 0xFFFFF && kGroupsMax <= 0xFFFFFF && kMessagesMax <= 0xFFFFFFFF);

struct MessageId {
  std::uint32_t queue = 0;
  std::uint32_t group = 0;
  std::uint32_t number = 0;
};

struct Findings {
  std::uint64_t sent = 0;        // Acknowledged.
  std::uint64_t received = 0;    // For the first time.
  std::uint64_t twice = 0;       // Received again: allowed on standard queues.
  std::uint64_t foreign = 0;     // Received, but from another run.
  std::uint64_t digests = 0;     // MD5s that were compared.
  std::uint64_t damaged = 0;     // Bodies or MD5s that differ from the sent ones.
  std::uint64_t disordered = 0;  // Received out of order within a FIFO group.
  std::uint64_t lost = 0;        // Acknowledged and never received; known only after a drain.
  bool drained = false;
  std::string first;  // The first mistake, as text.

  bool right(bool fifo) const {
    return damaged == 0 && disordered == 0 && lost == 0 && (!fifo || twice == 0);
  }
};

class Ledger {
 public:
  struct Shape {
    std::size_t queues = 1;
    std::size_t groups = 1;
    std::size_t body_size = 100;
    bool fifo = false;
    std::size_t check_every = 1;  // 0: no MD5 is compared.
  };

  // `run` distinguishes this run's messages from others.
  Ledger(const Shape& shape, std::uint32_t run);

  // The next message of a queue.
  MessageId next(std::uint32_t queue);
  void append_body(std::string& out, const MessageId& id) const;

  // The server has accepted the message, and returned this MD5 and sequence number (empty if none).
  void on_sent(const MessageId& id, std::string_view body, std::string_view md5,
               std::string_view sequence);
  void on_received(std::uint32_t queue, std::string_view body, std::string_view md5);

  // Messages that were sent and not received so far.
  std::uint64_t outstanding() const {
    return findings_.sent - std::min(received_sent_, findings_.sent);
  }

  // How many more messages wait than before the run, including those of others; negative if more of
  // theirs were received than of ours were sent.
  std::int64_t balance() const {
    return static_cast<std::int64_t>(findings_.sent) -
           static_cast<std::int64_t>(findings_.received + findings_.foreign);
  }

  // What is known at any time: everything except what is lost.
  const Findings& counts() const { return findings_; }

  // From now on findings() counts lost messages.
  void set_drained() { findings_.drained = true; }
  Findings findings() const;

 private:
  struct QueueBook {
    std::uint32_t next = 0;
    std::vector<bool> sent;
    std::vector<bool> received;
    std::vector<std::uint64_t> sequences;  // For FIFO queues, by number; 0: not known yet.
    std::vector<std::uint64_t> last;       // For FIFO queues, by group; 0: none yet.
  };

  void check_digest(std::string_view body, std::string_view md5);
  void check_order(QueueBook& book, const MessageId& id);
  void complain(std::uint64_t& counter, std::string text);

  const Shape shape_;
  const std::string run_;
  std::string filler_;
  std::vector<QueueBook> books_;
  Findings findings_;
  std::uint64_t received_sent_ = 0;
  std::uint64_t until_check_ = 0;
};

// Parses the beginning of a body; false if it is not a body of this run.
bool parse_body(std::string_view body, std::string_view run, MessageId& id);

}  // namespace stanchion::load

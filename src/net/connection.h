// One client connection: reads requests, hands them out, writes the answers in order.
//
// Reactor thread only. Kept alive by its listener and by pending waits.
//
//   NC1  pending_ holds the exchanges handed out and not yet written, oldest first; at most
//        pipelined_max of them are unanswered.
//   NC2  Input is read at once unless the peer's end was seen, or reading is paused by NC1 or by a
//        full output; then paused_ remembers that there may be more. So a client that disconnects
//        is noticed while its answer is pending.
//   NC3  An idle connection holds no buffer: input is read into the listener's scratch space and
//        only the rest of an unfinished request is kept.
//   NC4  All memory held for the connection is counted in held_: that of TLS as long as it is open,
//        and all else from the first byte of a request to the last byte of its answer. The listeners
//        know the sum.
//   NC5  While streaming_, the exchange at the front of pending_ is a stream whose head is written;
//        no request is taken any more.
//   NC6  While producing_, the exchange at the front of pending_ is an answer whose head is written
//        and whose source has more of its body. The source is asked only when no output waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/address_counts.h"
#include "net/exchange_state.h"
#include "net/output_queue.h"
#include "net/poller.h"
#include "net/request_parser.h"
#include "net/stream.h"

namespace stanchion::net {

class Listener;

class Connection : public std::enable_shared_from_this<Connection>, public Poller::Watcher {
 public:
  Connection(Listener& listener, int fd, ssl_st* tls, Peer peer);

  void start();
  // In place of start(): answers with `status` without waiting for a request, and closes.
  void refuse(int status, std::string_view reason);

  // The periodic check of the deadlines.
  void on_tick();
  // Closes now if idle, else after what is in progress.
  void drain();
  // Closes now. Pending exchanges are abandoned.
  void close();
  // Writes pending output and continues to read; see Listener::settle_later().
  void settle();

  // From the exchange: it was answered or dropped, or a stream has begun.
  void on_answer_ready();
  // From the stream: whether the piece will be written; see ResponseStream.
  bool send_piece(ExchangeState& state, std::string_view piece);
  void end_stream(ExchangeState& state);
  // From the exchange: its memory has changed. False if all connections together hold too much for
  // another exchange to wait.
  bool count_pending(ExchangeState& state);

  // Whether the client is responsible for the memory held: a request that has not fully arrived,
  // answers that are not read or that come after a long poll, more requests than are read at a
  // time; and since when.
  bool can_be_shed() const;
  std::uint64_t slow_since() const;
  // Frees that memory: refuses the request, or closes.
  void shed();

  // Whether no request of it is under way, completely received and not yet answered; and since when
  // the client could have sent one.
  bool can_give_way() const;
  std::size_t held() const { return held_; }
  bool has_part_of_hello() const { return stream_.has_part_of_hello(); }
  bool is_shaking_hands() const { return stream_.is_shaking_hands(); }
  bool is_lingering() const { return phase_ == Phase::kLingering; }
  std::uint64_t silent_since() const { return input_since_; }

  std::size_t index = 0;  // The index in the listener's list.
  Network network = 0;    // The address under which the listener counted it.

 private:
  // What the next input bytes belong to.
  enum class Input {
    kIdle,   // No request has begun.
    kHead,   // In the request line or headers.
    kBody,   // In the body.
    kEnded,  // No further request is accepted; bytes are discarded.
  };

  // Each comes behind those before it, and none is gone back to.
  enum class Phase : std::uint8_t {
    kOpen,
    kClosing,    // Closed once the output is written.
    kLingering,  // Everything is written; the peer has a moment to close first.
    kClosed,
  };
  bool is_closed() const { return phase_ == Phase::kClosed; }

  void on_ready(bool for_reading, bool ended) override;
  void go_on(bool for_reading);
  void watch();
  void resume_later();

  void pull_input();
  void consume(std::string_view bytes);
  std::size_t parse(std::string_view input);
  void begin_request();
  void begin_body();
  void dispatch();
  void fail_input(int status, std::string_view reason);
  void end_of_input();
  bool is_idle() const;
  bool may_take_request() const;
  bool may_read() const;

  std::shared_ptr<ExchangeState> new_state();
  void push_pending(std::shared_ptr<ExchangeState> state);
  void release_answers();
  void write_answer(ExchangeState& state);
  void produce();
  void pop_pending();
  void begin_stream(ExchangeState& state);
  void finish_stream();
  void flush();
  bool count();
  bool has_answers_behind() const;
  void begin_close();

  void set_input_deadline(std::chrono::milliseconds timeout);

  Listener& listener_;
  Stream stream_;
  Peer peer_;
  std::size_t held_ = 0;           // The part that the listener knows of.
  std::size_t pending_bytes_ = 0;  // Of what is pending.
  RequestParser parser_;
  Phase phase_ = Phase::kOpen;
  Input input_ = Input::kIdle;
  std::string unparsed_;                     // Input that the parser has not taken yet.
  std::shared_ptr<ExchangeState> incoming_;  // The request being read.
  std::shared_ptr<ExchangeState> spare_;     // For the next request, to save an allocation.

  std::shared_ptr<ExchangeState> pending_;  // The oldest; linked by next.
  ExchangeState* newest_ = nullptr;
  std::size_t pending_count_ = 0;
  OutputQueue output_;

  std::uint32_t input_deadline_ = 0;   // In listener ticks; 0 is none.
  std::uint32_t output_deadline_ = 0;  // Likewise.
  std::uint64_t input_since_ = 0;      // The listener's turn in which it or its last request began,
  std::uint64_t output_since_ = 0;     // and the turn in which output began to wait.

  bool corked_ = false;         // Answers are collected and written at the end of the turn.
  bool paused_ = false;         // Input was left unparsed or unread because of NC2.
  bool resuming_ = false;       // A call of on_ready() is scheduled.
  bool owes_continue_ = false;  // "100 Continue" is due once the answers before it are out.
  bool peer_ended_ = false;     // The peer sends nothing more.
  bool hung_up_ = false;        // Its end was reported; it comes behind what is left to read.
  bool streaming_ = false;      // NC5.
  bool producing_ = false;      // NC6.
  bool must_linger_ = false;    // The peer may still be sending: let it read the answer first.
};

}  // namespace stanchion::net

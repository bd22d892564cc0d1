#include "net/connection.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "net/listener.h"

namespace stanchion::net {
namespace asio = boost::asio;

namespace {

// After this many reads a connection lets others have a turn.
constexpr int kReadsPerTurn = 32;
// No further request is read while this much output waits for a client that does not read.
constexpr std::size_t kOutputMax = 256 * 1024;
// Answers that may wait for earlier ones without counting against the client.
constexpr std::size_t kLargeAnswers = 64 * 1024;
// Characters that a string stores inline.
const std::size_t kNoHeap = std::string().capacity();

ParserLimits parser_limits(const HttpLimits& limits) {
  return {.header_bytes_max = limits.header_bytes_max,
          .header_count_max = limits.header_count_max,
          .body_bytes_max = limits.body_bytes_max};
}

}  // namespace

Connection::Connection(Listener& listener, int fd, ssl_st* tls, Peer peer)
    : listener_(listener),
      stream_(fd, tls),
      peer_(std::move(peer)),
      parser_(parser_limits(listener.limits())),
      input_since_(listener.next_turn()) {}

void Connection::start() {
  // A TLS client has to send first, at once; a plain one may connect before it needs to.
  set_input_deadline(stream_.is_tls() ? listener_.limits().header_timeout
                                      : listener_.limits().idle_timeout);
  count();
  watch();
}

void Connection::watch() {
  if (!listener_.poller().add(stream_.fd(), *this)) close();
}

void Connection::refuse(int status, std::string_view reason) {
  fail_input(status, reason);
  watch();
  settle();
}

void Connection::on_tick() {
  if (listener_.is_past(output_deadline_)) {
    listener_.counters().timeouts.add();
    return close();
  }
  if (!listener_.is_past(input_deadline_)) return;
  if (phase_ == Phase::kLingering) return close();
  listener_.counters().timeouts.add();
  if (input_ == Input::kHead || input_ == Input::kBody) {
    fail_input(408, "The request did not arrive in time.");
    return settle();
  }
  close();
}

void Connection::drain() {
  // A request that has arrived but was not read yet still counts as in progress. After that,
  // settle() closes the connection, now if it is idle or once it is.
  go_on(true);
}

void Connection::close() {
  if (is_closed()) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  while (pending_ != nullptr) {
    ExchangeState::abandon(pending_);
    pending_->connection = nullptr;
    pop_pending();
  }
  incoming_.reset();
  count();
  output_ = {};  // What is not counted must not be held until the listener forgets the connection.
  stream_.close();
  listener_.remove(*this);
}

// Waiting.

void Connection::resume_later() {
  if (resuming_) return;
  resuming_ = true;
  asio::post(listener_.reactor().context(), [self = shared_from_this()] {
    self->resuming_ = false;
    self->go_on(true);
  });
}

void Connection::on_ready(bool for_reading, bool ended) {
  hung_up_ = hung_up_ || ended;
  go_on(for_reading);
}

void Connection::go_on(bool for_reading) {
  if (is_closed()) return;
  // Under TLS, writing may wait for input, and reading for output.
  if (for_reading || stream_.is_tls()) {
    corked_ = true;
    if (std::exchange(paused_, false)) consume({});
    pull_input();
    corked_ = false;
  }
  settle();
}

void Connection::settle() {
  if (is_closed()) return;
  if (owes_continue_ && pending_ == nullptr) {
    owes_continue_ = false;
    output_.tail().append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (!output_.empty()) flush();
  if (producing_ && output_.empty() && !is_closed()) produce();
  if (is_closed()) return;
  if (streaming_ && (peer_ended_ || listener_.draining())) return finish_stream();
  if (output_.empty()) {
    if (phase_ == Phase::kClosing) begin_close();
    if (peer_ended_ && (phase_ == Phase::kLingering || pending_ == nullptr)) close();
    if (listener_.draining() && is_idle()) close();
    if (is_closed()) return;
  }
  if (is_idle() && input_deadline_ == 0) {
    set_input_deadline(listener_.limits().idle_timeout);
  }
  if (input_ == Input::kEnded && !unparsed_.empty()) release(unparsed_);
  count();
  // There is also no room for answers that cannot be written because earlier ones are missing, nor for
  // a hello that has not fully arrived.
  if (listener_.full() && (has_answers_behind() || stream_.has_part_of_hello())) {
    listener_.counters().shed.add();
    return close();
  }
  // Others have their turn between two parts of a body.
  if (producing_ && output_.empty()) return resume_later();
  if (!may_read()) return;
  if (paused_) resume_later();
}

// Input.

bool Connection::is_idle() const {
  return input_ == Input::kIdle && pending_ == nullptr && unparsed_.empty();
}

bool Connection::may_take_request() const {
  return pending_count_ < listener_.limits().pipelined_max && output_.size() < kOutputMax;
}

bool Connection::may_read() const {
  if (is_closed() || peer_ended_) return false;
  return input_ != Input::kIdle || may_take_request();
}

void Connection::pull_input() {
  for (int round = 0; round < kReadsPerTurn; ++round) {
    if (!may_read()) {
      paused_ = true;
      return;
    }
    const std::span<char> scratch = listener_.scratch();
    const IoResult result = stream_.read(scratch);
    switch (result.state) {
      case IoState::kDone:
        consume({scratch.data(), result.bytes});
        // A short read from a socket means that it is empty and that later data is reported as an
        // event; an end of input that was already reported is not. TLS has to be asked.
        if (!stream_.is_tls() && !hung_up_ && result.bytes < scratch.size()) return;
        break;
      case IoState::kWantsRead:
      case IoState::kWantsWrite:
        return;
      case IoState::kEnd:
        return end_of_input();
      case IoState::kFailed:
        if (!stream_.fall_back_to_plain()) return close();
        fail_input(400, "This port speaks HTTPS: call it with https:// in place of http://.");
        break;
    }
  }
  paused_ = true;
}

void Connection::consume(std::string_view bytes) {
  if (input_ == Input::kEnded) return;
  if (unparsed_.empty()) {
    const std::size_t used = parse(bytes);
    unparsed_.assign(bytes.substr(used));
    return;
  }
  unparsed_.append(bytes);
  unparsed_.erase(0, parse(unparsed_));
  if (unparsed_.empty()) release(unparsed_);
}

// Takes as much of `input` as possible and returns how much.
std::size_t Connection::parse(std::string_view input) {
  std::size_t used = 0;
  while (used < input.size()) {
    if (input_ == Input::kIdle) {
      // Some clients send a line feed after a body that is not part of it.
      if (input[used] == '\r' || input[used] == '\n') {
        ++used;
        continue;
      }
      if (!may_take_request()) {
        paused_ = true;
        return used;
      }
      begin_request();
    }
    const std::size_t taken = parser_.feed(input.substr(used));
    used += taken;
    if (!count()) {
      listener_.counters().shed.add();
      fail_input(503, "Too many requests and answers are under way; try again.");
    } else if (parser_.failed()) {
      fail_input(parser_.failure().status, parser_.failure().reason);
    } else if (parser_.complete()) {
      dispatch();
    } else if (input_ == Input::kHead && parser_.head_done()) {
      begin_body();
    } else if (taken == 0) {
      return used;
    }
    if (input_ == Input::kEnded) return input.size();
  }
  return used;
}

void Connection::begin_request() {
  incoming_ = new_state();
  parser_.start(incoming_->request);
  input_ = Input::kHead;
  input_since_ = listener_.next_turn();
  set_input_deadline(listener_.limits().header_timeout);
}

void Connection::begin_body() {
  input_ = Input::kBody;
  set_input_deadline(listener_.limits().body_timeout);
  owes_continue_ = parser_.expects_continue() && incoming_->request.body.empty();
}

void Connection::dispatch() {
  const bool keep_alive = parser_.keep_alive() && !listener_.draining();
  input_ = keep_alive ? Input::kIdle : Input::kEnded;
  input_deadline_ = 0;
  owes_continue_ = false;
  incoming_->framing = {.keep_alive = keep_alive,
                        .http_1_0 = incoming_->request.http_1_0,
                        .head_only = incoming_->request.method == "HEAD"};
  auto state = std::move(incoming_);
  push_pending(state);
  listener_.counters().requests.add();
  listener_.handler().handle(Exchange(std::move(state)));
}

// Answers the request that is being read with an error, and reads no further request.
void Connection::fail_input(int status, std::string_view reason) {
  listener_.counters().bad_requests.add();
  auto state = incoming_ ? std::move(incoming_) : new_state();
  input_ = Input::kEnded;
  input_deadline_ = 0;
  owes_continue_ = false;
  must_linger_ = true;
  state->framing = {
      .keep_alive = false, .http_1_0 = false, .head_only = state->request.method == "HEAD"};
  state->response = listener_.handler().refuse(state->request, status, reason);
  release(state->request.body);
  state->phase = ExchangeState::Phase::kAnswered;
  push_pending(std::move(state));
  release_answers();
}

void Connection::end_of_input() {
  peer_ended_ = true;
  input_ = Input::kEnded;
  input_deadline_ = 0;
  owes_continue_ = false;
  incoming_.reset();
  for (auto state = pending_; state != nullptr; state = state->next) ExchangeState::abandon(state);
}

// Output.

std::shared_ptr<ExchangeState> Connection::new_state() {
  auto state = std::exchange(spare_, nullptr);
  if (!state) {
    state = std::make_shared<ExchangeState>();
    state->request.peer = peer_;
    state->reactor = &listener_.reactor();
  }
  state->connection = this;
  return state;
}

void Connection::push_pending(std::shared_ptr<ExchangeState> state) {
  ExchangeState* added = state.get();
  (newest_ == nullptr ? pending_ : newest_->next) = std::move(state);
  newest_ = added;
  ++pending_count_;
  count_pending(*added);
}

void Connection::pop_pending() {
  auto state = std::exchange(pending_, std::move(pending_->next));
  if (pending_ == nullptr) newest_ = nullptr;
  --pending_count_;
  pending_bytes_ -= std::exchange(state->counted, 0);
  state->connection = nullptr;
  // If no Exchange refers to the state any more, the next request can reuse it.
  if (is_closed() || spare_ != nullptr || state.use_count() != 1) return;
  if (state->request.body.capacity() + state->request.head.capacity() > ExchangeState::kKeptBytes)
    return;
  state->request.clear();
  state->claimed = 0;
  state->response = HttpResponse();
  state->source = nullptr;
  state->on_abandoned = nullptr;
  state->phase = ExchangeState::Phase::kOpen;
  state->abandoned = state->disowned = false;
  spare_ = std::move(state);
}

void Connection::on_answer_ready() {
  release_answers();
  if (corked_ || is_closed()) return;
  const auto self = shared_from_this();  // The caller knows us by a pointer that closing clears.
  if (pending_ != nullptr) {
    // The answers to others may come in the same turn, and are written with this one; unless so
    // many answers have come already that there is no room to wait for more.
    count();
    if (!listener_.full()) return listener_.settle_later(self);
  }
  settle();
}

void Connection::release_answers() {
  while (pending_ != nullptr && pending_->phase != ExchangeState::Phase::kOpen &&
         phase_ == Phase::kOpen && !producing_) {
    if (pending_->phase == ExchangeState::Phase::kStreaming) return begin_stream(*pending_);
    if (pending_->phase == ExchangeState::Phase::kDropped) {
      // If nobody is left to read the answer, or the handler has none, say so.
      if (pending_->abandoned) {
        phase_ = Phase::kClosing;
        return;
      }
      pending_->response = HttpResponse(500, "The request was not answered.\n");
    }
    write_answer(*pending_);
    if (!producing_) pop_pending();
  }
}

void Connection::write_answer(ExchangeState& state) {
  const bool last_of_drain =
      listener_.draining() && state.next == nullptr && input_ == Input::kIdle && unparsed_.empty();
  if (state.response.close || last_of_drain) state.framing.keep_alive = false;
  state.framing.streamed = static_cast<bool>(state.source);
  // Only its end tells a client of HTTP/1.0 where such a body ends.
  if (state.source && state.framing.http_1_0) state.framing.keep_alive = false;
  if (append_response_head(output_.tail(), state.response, state.framing, listener_.date_line())) {
    if (state.source) {
      producing_ = true;
      if (!state.response.body.empty())
        append_piece(output_.tail(), state.response.body, state.framing);
      state.response = HttpResponse();
      count_pending(state);
      return;
    }
    output_.append(std::move(state.response.body));
  }
  if (state.framing.keep_alive) return;
  phase_ = Phase::kClosing;
  input_ = Input::kEnded;
}

// Writes the next part of the body of the answer at the front, and the answers behind it if that
// was the last.
void Connection::produce() {
  std::string part;
  const BodyPart said = pending_->source(part);
  if (said == BodyPart::kCut) return close();
  if (!part.empty()) append_piece(output_.tail(), part, pending_->framing);
  if (said == BodyPart::kLast) {
    append_last_piece(output_.tail(), pending_->framing);
    producing_ = false;
    if (!pending_->framing.keep_alive) {
      phase_ = Phase::kClosing;
      input_ = Input::kEnded;
    }
    pop_pending();
    release_answers();
  }
  if (!output_.empty()) flush();
}

// Streams.

void Connection::begin_stream(ExchangeState& state) {
  if (std::exchange(streaming_, true)) return;
  input_ = Input::kEnded;
  input_deadline_ = 0;
  owes_continue_ = false;
  incoming_.reset();
  state.framing.keep_alive = false;
  state.framing.streamed = true;
  stream_.limit_unacknowledged(listener_.limits().write_timeout);
  if (!append_response_head(output_.tail(), state.response, state.framing, listener_.date_line())) {
    // The head is all that there is.
    streaming_ = false;
    phase_ = Phase::kClosing;
  } else if (!state.response.body.empty()) {
    append_piece(output_.tail(), state.response.body, state.framing);
  }
  state.response = HttpResponse();
  count_pending(state);
}

bool Connection::send_piece(ExchangeState& state, std::string_view piece) {
  if (!streaming_ || pending_.get() != &state) return false;
  if (!output_.empty() || is_closed() || peer_ended_ || listener_.full()) return false;
  const auto self = shared_from_this();  // The caller knows us by a pointer that closing clears.
  append_piece(output_.tail(), piece, state.framing);
  settle();
  return !is_closed();
}

// The owner of a stream ends it: what waits is still written.
void Connection::end_stream(ExchangeState& state) {
  const auto self = shared_from_this();
  if (!streaming_ || pending_.get() != &state) return on_answer_ready();
  append_last_piece(output_.tail(), state.framing);
  streaming_ = false;
  phase_ = Phase::kClosing;
  pop_pending();
  if (!corked_) settle();
}

// The peer has left, or the server is being stopped, which does not wait for a slow client.
void Connection::finish_stream() {
  if (!peer_ended_) {
    append_last_piece(output_.tail(), pending_->framing);
    flush();
  }
  close();
}

void Connection::flush() {
  while (!output_.empty()) {
    OutputQueue::Pieces pieces;
    const IoResult result = stream_.write(output_.front(pieces));
    switch (result.state) {
      case IoState::kDone:
        output_.consume(result.bytes);
        output_deadline_ = 0;
        break;
      case IoState::kWantsRead:
      case IoState::kWantsWrite:
        if (output_deadline_ == 0) {
          output_deadline_ = listener_.deadline_in(listener_.limits().write_timeout);
          output_since_ = listener_.next_turn();
        }
        // If there is no room, a client that does not read has to go before its timeout.
        count();
        if (listener_.full()) {
          listener_.counters().shed.add();
          close();
        }
        return;
      case IoState::kEnd:
      case IoState::kFailed:
        return close();
    }
  }
}

// Memory.

// Updates the held bytes. False if they have grown and all connections together hold too much.
bool Connection::count() {
  std::size_t now = pending_bytes_ + output_.memory() + stream_.memory();
  if (unparsed_.capacity() > kNoHeap) now += unparsed_.capacity();
  if (incoming_) now += incoming_->bytes();
  if (is_closed()) now = 0;
  if (now == held_) return true;
  const std::size_t before = std::exchange(held_, now);
  return listener_.count_held(now - before) || now < before;
}

bool Connection::count_pending(ExchangeState& state) {
  const std::size_t now = state.bytes();
  pending_bytes_ += now - std::exchange(state.counted, now);
  count();
  return listener_.may_wait();
}

// Whether large answers wait for the answer to an earlier request.
bool Connection::has_answers_behind() const {
  std::size_t bytes = 0;
  for (const ExchangeState* state = pending_.get(); state != nullptr; state = state->next.get())
    bytes += state->response.body.capacity();
  return bytes > kLargeAnswers;
}

bool Connection::can_be_shed() const {
  return phase_ < Phase::kLingering && (incoming_ != nullptr || output_deadline_ != 0 ||
                                        (paused_ && !unparsed_.empty()) || has_answers_behind());
}

std::uint64_t Connection::slow_since() const {
  return output_deadline_ != 0 ? output_since_ : input_since_;
}

bool Connection::can_give_way() const {
  return !is_closed() && pending_ == nullptr && output_.empty();
}

void Connection::shed() {
  listener_.counters().shed.add();
  if (output_deadline_ != 0 || incoming_ == nullptr) return close();
  fail_input(503, "Too many requests and answers are under way; try again.");
  settle();
}

// Everything is written. Closing a socket that has unread input makes the kernel reset the
// connection, and the client may then lose the answer. So where input was cut short, the client
// closes first or a short time passes.
void Connection::begin_close() {
  if (!must_linger_ || peer_ended_) return close();
  phase_ = Phase::kLingering;
  stream_.shutdown_write();
  set_input_deadline(listener_.limits().linger_timeout);
}

void Connection::set_input_deadline(std::chrono::milliseconds timeout) {
  input_deadline_ = listener_.deadline_in(timeout);
}

}  // namespace stanchion::net

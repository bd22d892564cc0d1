// State shared by an Exchange and its connection: the request, the answer, and which of the two is
// gone.
//
// Reactor thread only, apart from the reference count and what is said to be of any thread.
#pragma once

#include <atomic>
#include <memory>

#include "net/http_server.h"

namespace stanchion::net {

class Connection;

struct ExchangeState {
  enum class Phase { kOpen, kStreaming, kAnswered, kDropped };

  HttpRequest request;
  HttpResponse response;
  BodySource source;  // Of the rest of the response's body; empty: there is none.
  Phase phase = Phase::kOpen;
  bool abandoned = false;
  // The stream was destroyed, and nobody may be called any more; set on any thread.
  std::atomic<bool> disowned{false};
  ResponseFraming framing;
  Connection* connection = nullptr;  // Null once the connection is closed.
  Reactor* reactor = nullptr;
  Task on_abandoned;
  std::shared_ptr<ExchangeState> next;  // The next request of the same connection.
  std::size_t claimed = 0;              // Bytes that the handler holds for the exchange.
  std::size_t counted = 0;              // Of bytes(), what the connection knows of while pending.

  // Approximate memory of an exchange besides its request and response, here and in the handler.
  static constexpr std::size_t kOwnBytes = 2048;
  // Memory that an exchange may keep for the next request of its connection.
  static constexpr std::size_t kKeptBytes = 2048;

  std::size_t bytes() const {
    return kOwnBytes + claimed + request.body.capacity() + request.head.capacity() +
           request.headers.capacity() * sizeof(HttpHeader) + response.body.capacity() +
           response.header_lines().size();
  }

  // Whether the handler has not said its last word.
  bool is_open() const { return phase == Phase::kOpen || phase == Phase::kStreaming; }

  // Marks an open exchange as abandoned and lets its callback run from the loop, so that no caller
  // of ours finds its state changed during a call.
  static void abandon(const std::shared_ptr<ExchangeState>& state);
  // The callback, which is also called if the exchange is abandoned already.
  static void set_on_abandoned(const std::shared_ptr<ExchangeState>& state, Task callback);
};

}  // namespace stanchion::net

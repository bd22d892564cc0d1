// What an Exchange and its connection share: the request, the answer, and which of them is gone.
//
// Reactor thread only, apart from the reference count.
#pragma once

#include <memory>

#include "net/http_server.h"

namespace stanchion::net {

class Connection;

struct ExchangeState {
  enum class Phase { kOpen, kAnswered, kDropped };

  HttpRequest request;
  HttpResponse response;
  Phase phase = Phase::kOpen;
  bool abandoned = false;
  ResponseFraming framing;
  Connection* connection = nullptr;  // Null once the connection is closed.
  Reactor* reactor = nullptr;
  Task on_abandoned;
  std::shared_ptr<ExchangeState> next;  // The next request of the same connection.
  std::size_t claimed = 0;              // Bytes that the handler holds for it.
  std::size_t counted = 0;              // Of bytes(), what the connection knows of while pending.

  // What an exchange takes besides its request and response, here and in the handler, about.
  static constexpr std::size_t kOwnBytes = 2048;
  // Memory that an exchange may keep from one request to the next of its connection.
  static constexpr std::size_t kKeptBytes = 2048;

  std::size_t bytes() const {
    return kOwnBytes + claimed + request.body.capacity() + request.head.capacity() +
           request.headers.capacity() * sizeof(HttpHeader) + response.body.capacity() +
           response.header_lines().size();
  }

  // Marks an open exchange as abandoned and lets its callback run from the loop, so that no caller
  // of ours finds its own state changed under it.
  static void abandon(const std::shared_ptr<ExchangeState>& state);
};

}  // namespace stanchion::net

// An HTTP/1.1 client for all code in Stanchion that calls a server: over TCP, TLS or a Unix socket.
//
// Every call is bounded: by a timeout for connecting, a timeout for the whole call, and the size of
// the answer. Connections are kept and reused. A server may close a kept connection at any moment,
// even while the next request is on its way; such a request is sent once more if it is repeatable
// and no byte of an answer had come, otherwise the call fails.
//
//   HttpClient       blocks until the answer is there; one thread at a time.
//   AsyncHttpClient  lives on an Asio loop and calls back; that loop's thread only.
//   ClientConnection (client_connection.h) is what both are made of, and the load generator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/response_reader.h"
#include "net/tls_client.h"
#include "net/url.h"

namespace boost::asio {
class io_context;
}

namespace stanchion::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct ClientOptions {
  TlsTrust trust = {};
  std::string server_name = {};  // The name that the certificate must have; empty: the URL's host.
  // For TCP and TLS, over all addresses of a host. The resolver of names has its own limits.
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds request_timeout{30'000};  // From the call to the end of the answer.
  ResponseLimits limits = {};
  std::size_t idle_max = 8;                     // Idle connections that are kept.
  std::chrono::milliseconds idle_time{20'000};  // How long each is kept.
};

struct ClientRequest {
  std::string method = "GET";
  Url url = {};
  Headers headers = {};  // Besides Host, Content-Length and Connection, which are the client's.
  std::string body = {};
  bool repeatable = false;  // Repeating the request has no further effect.
  bool keep_alive = true;
  std::optional<std::chrono::milliseconds> timeout = {};  // In place of request_timeout.
};

struct ClientResponse {
  int status = 0;
  Headers headers = {};
  std::string body = {};

  // The value of the first header of that name, in any case; null if there is none.
  const std::string* header(std::string_view name) const;
};

struct ClientState;

class HttpClient {
 public:
  explicit HttpClient(ClientOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Blocks until the answer is there or the call has failed.
  Result<ClientResponse> call(ClientRequest request);

 private:
  std::unique_ptr<ClientState> state_;
};

class AsyncHttpClient {
 public:
  // `loop` outlives the client.
  explicit AsyncHttpClient(boost::asio::io_context& loop, ClientOptions options = {});
  // Calls under way are abandoned, without calling back.
  ~AsyncHttpClient();
  AsyncHttpClient(const AsyncHttpClient&) = delete;
  AsyncHttpClient& operator=(const AsyncHttpClient&) = delete;

  // `sent`: the request or a part of it may have reached the server, also if the call failed.
  using Done = std::move_only_function<void(Result<ClientResponse>, bool sent)>;
  using CallId = std::uint64_t;
  // `done` is called once, never inside this call.
  CallId call(ClientRequest request, Done done);

  // Gives the call up: nobody is called back. Returns whether the request or a part of it may have
  // reached the server; nullopt if the call is not under way any more.
  std::optional<bool> cancel(CallId call);

  std::size_t under_way() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace stanchion::net

// An HTTP client on a thread of its own, on which a runner that makes calls lives as well.
//
// post() may be called on any thread; everything else only by functions that run on the loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/http_client.h"

namespace stanchion::runner {

class HttpLoop {
 public:
  explicit HttpLoop(net::ClientOptions options);
  // Waits for what runs now. Calls under way are abandoned, and nothing that was posted runs later.
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  void post(std::function<void()> task);

  void after(std::chrono::milliseconds delay, std::function<void()> task);
  using CallId = net::AsyncHttpClient::CallId;
  using Done = std::function<void(Result<net::ClientResponse>)>;
  CallId call(net::ClientRequest request, Done done);
  void cancel(CallId call);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For a person: "answered 503 Service Unavailable: …", with the beginning of the body.
std::string answer_in_words(const net::ClientResponse& response);

}  // namespace stanchion::runner

// The SQS endpoint: an HTTP exchange becomes a request of the model, goes to the broker, and its
// reply becomes the answer. The protocols end here; below nobody knows which one a request came in.
//
// Called on the reactor of each exchange; what it keeps per reactor is touched by that one only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "broker/broker.h"
#include "net/http_server.h"
#include "service/reactor_loop.h"
#include "wire/decode.h"

namespace stanchion::service {

struct EndpointOptions {
  std::string account = "000000000000";
  std::string region = "us-east-1";
};

class SqsEndpoint final : public net::HttpHandler {
 public:
  // `broker` and `loops` (one per reactor, by its index) must outlive the endpoint.
  SqsEndpoint(EndpointOptions options, broker::Broker& broker,
              std::vector<std::unique_ptr<ReactorLoop>>& loops);

  void handle(net::Exchange exchange) override;

 private:
  struct Call;

  void execute(std::shared_ptr<Call> call, wire::Decoded decoded);
  void answer_health(net::Exchange exchange, std::string_view path);

  const EndpointOptions options_;
  broker::Broker& broker_;
  std::vector<std::unique_ptr<ReactorLoop>>& loops_;
};

}  // namespace stanchion::service

// GET /console/server: what the console tells of the server itself.
//
//   request ─▶ every shard's loop ─▶ a thread: what the process takes, the answer
//
// Called on the reactor of each exchange.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/background.h"
#include "broker/broker.h"
#include "monitoring/metrics_page.h"
#include "net/http_server.h"
#include "service/reactor_loop.h"

namespace stanchion::console {

struct ServerRow {
  std::string name;
  std::string value;
  std::string help;
};

struct ServerSection {
  std::string title;
  std::vector<ServerRow> rows;
};

// Who asks: an account, which is not told of the queues of others, or empty for whoever runs the
// server.
std::vector<ServerSection> describe_server(const std::vector<broker::ShardFigures>& shards,
                                           const monitoring::ServerFigures& server,
                                           std::chrono::system_clock::time_point now,
                                           const std::string& account);

class ServerPage {
 public:
  // Looks at everything but the shards; called on the thread that makes the page.
  using LookAtServer = std::function<monitoring::ServerFigures()>;

  // Everything must outlive the page. `settings` must hold no secrets.
  ServerPage(broker::Broker& broker, broker::Background& background,
             std::vector<std::unique_ptr<service::ReactorLoop>>& loops, LookAtServer look,
             std::vector<ServerRow> settings);

  // `account` as for describe_server(); the settings are for whoever runs the server.
  void answer(net::Exchange exchange, std::string account);

 private:
  broker::Broker& broker_;
  broker::Background& background_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
  const LookAtServer look_;
  const std::vector<ServerRow> settings_;
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace stanchion::console

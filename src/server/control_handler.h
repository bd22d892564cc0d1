// The control socket for commands from this machine: a Unix socket in the data directory that only
// the server's own user (and root) can open.
//
//   POST /backup {"to": "/absolute/path"}   200 when the backup is complete and durable
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"
#include "service/reactor_loop.h"

namespace stanchion::server {

class ControlHandler final : public net::HttpHandler {
 public:
  using Done = std::move_only_function<void(const Status&)>;
  // Begins a backup to that directory and returns at once; `done` is called on any thread. Any
  // reactor's thread.
  using BackUp = std::function<void(std::string to, Done done)>;

  // `loops` must outlive the handler and any backup that it begins.
  ControlHandler(BackUp back_up, std::vector<std::unique_ptr<service::ReactorLoop>>& loops);

  void handle(net::Exchange exchange) override;

 private:
  BackUp back_up_;
  std::vector<std::unique_ptr<service::ReactorLoop>>& loops_;
};

}  // namespace stanchion::server

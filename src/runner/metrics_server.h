// Answers GET /metrics with a page for Prometheus.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace stanchion::runner {

class MetricsServer {
 public:
  // `address` is HOST:PORT. `page` is called on the server's thread, until the server is destroyed.
  static Result<std::unique_ptr<MetricsServer>> start(const std::string& address,
                                                      std::function<std::string()> page);
  ~MetricsServer();

  // "127.0.0.1:9100", with the port that is listened on.
  const std::string& address() const;

 private:
  struct Impl;
  explicit MetricsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stanchion::runner

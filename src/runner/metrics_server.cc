#include "runner/metrics_server.h"

#include <fmt/format.h>

#include <utility>

#include "net/http_server.h"
#include "settings/settings.h"

namespace stanchion::runner {
namespace {

constexpr std::size_t kConnectionsMax = 64;
constexpr std::size_t kBodyMax = 4096;

class Page final : public net::HttpHandler {
 public:
  explicit Page(std::function<std::string()> page) : page_(std::move(page)) {}

  void handle(net::Exchange exchange) override {
    const net::HttpRequest& request = exchange.request();
    const std::string_view path = request.target.substr(0, request.target.find('?'));
    net::HttpResponse response(404, "metrics are at /metrics\n");
    if (path == "/metrics") {
      const bool reads = request.method == "GET" || request.method == "HEAD";
      response = reads ? net::HttpResponse(200, page_())
                       : net::HttpResponse(405, "metrics are read by GET\n");
    }
    response.add_header("Content-Type", response.status == 200
                                            ? "text/plain; version=0.0.4; charset=utf-8"
                                            : "text/plain; charset=utf-8");
    exchange.answer(std::move(response));
  }

 private:
  std::function<std::string()> page_;
};

}  // namespace

struct MetricsServer::Impl {
  explicit Impl(std::function<std::string()> text) : page(std::move(text)), pool({.reactors = 1}) {}
  ~Impl() {
    server.reset();
    pool.stop();
  }

  Page page;
  net::ReactorPool pool;
  std::unique_ptr<net::HttpServer> server;
  std::string address;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const std::string& address,
                                                            std::function<std::string()> page) {
  const auto listen = settings::parse_listen(address);
  if (!listen) return fail(fmt::format("--metrics: {}", listen.error().message));
  auto impl = std::make_unique<Impl>(std::move(page));
  auto server = net::HttpServer::start(
      impl->pool,
      {.host = listen->host,
       .port = listen->port,
       .limits = {.body_bytes_max = kBodyMax, .connections_max = kConnectionsMax}},
      impl->page);
  if (!server) return fail(fmt::format("--metrics: {}", server.error().message));
  impl->server = std::move(*server);
  RETURN_IF_FAILED(impl->pool.start());
  const bool v6 = listen->host.find(':') != std::string::npos;
  impl->address =
      fmt::format("{}{}{}:{}", v6 ? "[" : "", listen->host, v6 ? "]" : "", impl->server->port());
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsServer::~MetricsServer() = default;

const std::string& MetricsServer::address() const {
  return impl_->address;
}

}  // namespace stanchion::runner

#include "server/control_handler.h"

#include <boost/json.hpp>
#include <climits>
#include <optional>
#include <string_view>

namespace stanchion::server {
namespace {

namespace json = boost::json;

net::HttpResponse message(int status, std::string_view text) {
  net::HttpResponse response(status, json::serialize(json::object{{"message", text}}) + "\n");
  response.add_header("Content-Type", "application/json");
  return response;
}

std::optional<std::string> parse_target(std::string_view body) {
  json::error_code error;
  const json::value value = json::parse(body, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::value* to = value.as_object().if_contains("to");
  if (to == nullptr || !to->is_string()) return std::nullopt;
  std::string path(to->as_string());
  // The server has a different working directory than its caller.
  if (!path.starts_with('/') || path.size() >= PATH_MAX || path.contains('\0')) return std::nullopt;
  return path;
}

}  // namespace

ControlHandler::ControlHandler(BackUp back_up,
                               std::vector<std::unique_ptr<service::ReactorLoop>>& loops)
    : back_up_(std::move(back_up)), loops_(loops) {}

void ControlHandler::handle(net::Exchange exchange) {
  const net::HttpRequest& request = exchange.request();
  if (request.target != "/backup") return exchange.answer(message(404, "there is only /backup"));
  if (request.method != "POST") return exchange.answer(message(405, "use POST to make a backup"));
  auto to = parse_target(request.body);
  if (!to) return exchange.answer(message(400, "send {\"to\": \"/an/absolute/path\"}"));
  service::ReactorLoop& loop = *loops_[exchange.reactor().index()];
  back_up_(std::move(*to), [&loop, exchange = std::move(exchange)](const Status& status) mutable {
    auto answer = status ? message(200, "complete") : message(500, status.error().message);
    loop.post([exchange = std::move(exchange), answer = std::move(answer)]() mutable {
      exchange.answer(std::move(answer));
    });
  });
}

}  // namespace stanchion::server

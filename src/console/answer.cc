#include "console/answer.h"

#include <boost/json.hpp>

namespace stanchion::console {

net::HttpResponse console_answer(int status, const boost::json::object& value) {
  net::HttpResponse response(status, boost::json::serialize(value));
  response.add_plain_header("Content-Type", "application/json");
  response.add_plain_header("Cache-Control", "no-store");
  return response;
}

net::HttpResponse console_refusal(int status, std::string_view message) {
  return console_answer(status, {{"message", message}});
}

}  // namespace stanchion::console

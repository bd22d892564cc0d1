#include "service/http_answer.h"

#include <random>
#include <utility>

#include "base/text.h"
#include "base/uuid.h"

namespace stanchion::service {

std::string new_request_id() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const std::uint64_t first_bits = random();
  return format_uuid(make_uuid(first_bits, random()));
}

net::HttpResponse to_response(wire::HttpAnswer answer) {
  net::HttpResponse response(answer.status, std::move(answer.body));
  response.add_plain_header(wire::kRequestIdHeader, answer.request_id);
  if (!answer.query_error.empty()) response.add_header(wire::kQueryErrorHeader, answer.query_error);
  if (!answer.content_type.empty()) response.add_plain_header("Content-Type", answer.content_type);
  return response;
}

}  // namespace stanchion::service

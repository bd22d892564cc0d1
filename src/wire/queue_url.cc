#include "wire/queue_url.h"

#include <fmt/format.h>

#include <algorithm>

namespace stanchion::wire {
namespace {

constexpr std::size_t kAccountSize = 12;
// Stands in place of the account and means the caller's. ElasticMQ's queue URLs have this form.
constexpr std::string_view kOwnQueues = "queue";

bool is_account(std::string_view text) {
  return text.size() == kAccountSize &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::unexpected<Error> invalid_address(std::string_view url) {
  return refuse(ErrorCode::kInvalidAddress,
                fmt::format("The address {} is not valid for this endpoint.", url));
}

std::unexpected<Error> no_queue() {
  return refuse(ErrorCode::kQueueDoesNotExist, "The specified queue does not exist.");
}

}  // namespace

Answer<QueueRef> parse_queue_url(std::string_view url, const DecodeContext& context) {
  std::string_view path = url.substr(0, url.find('?'));
  path = path.substr(0, path.find('#'));
  if (const std::size_t scheme = path.find("://"); scheme != std::string_view::npos) {
    path.remove_prefix(scheme + 3);
    const std::size_t slash = path.find('/');
    if (slash == std::string_view::npos) return no_queue();
    path.remove_prefix(slash);
  }
  if (path.find_first_not_of('/') == std::string_view::npos) return no_queue();
  const std::size_t last = path.rfind('/');
  if (last == std::string_view::npos) {
    return QueueRef{std::string(context.account), std::string(context.region), std::string(path)};
  }
  const std::string_view name = path.substr(last + 1);
  std::string_view account = path.substr(0, last);
  account.remove_prefix(account.rfind('/') + 1);  // npos + 1 is 0: no slash, nothing to remove.
  if (account == kOwnQueues) account = context.account;
  if (name.empty() || !is_account(account)) return invalid_address(url);
  return QueueRef{std::string(account), std::string(context.region), std::string(name)};
}

void append_queue_url(std::string& out, std::string_view base_url, const QueueRef& queue) {
  out.append(base_url).append("/").append(queue.account).append("/").append(queue.name);
}

}  // namespace stanchion::wire

#include "service/home_region.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/routing.h"

namespace stanchion::service {
namespace {

constexpr std::string_view kArn = "arn:";
constexpr std::string_view kService = "sqs:";

// Removes letters, digits and hyphens from the front of `text`, and the colon after them; false if
// there are none, or no colon.
bool take_word(std::string_view& text) {
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-");
  if (end == 0 || end == std::string_view::npos || text[end] != ':') return false;
  text.remove_prefix(end + 1);
  return true;
}

// The size of "arn:<partition>:sqs:<region>:" at the front of `text`, or 0.
std::size_t queue_arn_head(std::string_view text) {
  std::string_view rest = text.substr(kArn.size());
  if (!take_word(rest) || !rest.starts_with(kService)) return 0;
  rest.remove_prefix(kService.size());
  return take_word(rest) ? text.size() - rest.size() : 0;
}

void bring_home(std::optional<std::string>& arn, std::string_view region) {
  if (arn) arn = with_home_arns(*arn, region);
}

void bring_home(StringMap& attributes, std::string_view region) {
  for (const std::string_view name : {"RedrivePolicy", "RedriveAllowPolicy", "Policy"})
    if (const auto found = attributes.find(name); found != attributes.end())
      found->second = with_home_arns(found->second, region);
}

bool is_elsewhere(const std::optional<std::string>& arn, std::string_view region) {
  const auto queue = arn ? parse_queue_arn(*arn) : std::nullopt;
  return queue && queue->region != region;
}

Error no_resource(std::string_view parameter) {
  return {ErrorCode::kResourceNotFound,
          fmt::format("The resource that you specified for the {} parameter doesn't exist.",
                      parameter)};
}

}  // namespace

std::string with_home_arns(std::string_view text, std::string_view region) {
  // An ARN of ours without account and name, and so without the colon between them.
  std::string head = QueueRef{"", std::string(region), ""}.arn();
  head.pop_back();
  std::string out;
  while (true) {
    const std::size_t at = std::min(text.find(kArn), text.size());
    out.append(text.substr(0, at));
    text.remove_prefix(at);
    if (text.empty()) return out;
    const std::size_t size = queue_arn_head(text);
    out.append(size == 0 ? kArn : std::string_view(head));
    text.remove_prefix(size == 0 ? kArn.size() : size);
  }
}

void bring_home(Request& request, std::string_view region) {
  if (auto* create = std::get_if<CreateQueue>(&request))
    return bring_home(create->attributes, region);
  if (auto* set = std::get_if<SetQueueAttributes>(&request))
    return bring_home(set->attributes, region);
  if (auto* list = std::get_if<ListMessageMoveTasks>(&request))
    return bring_home(list->source_arn, region);
  if (auto* start = std::get_if<StartMessageMoveTask>(&request)) {
    bring_home(start->source_arn, region);
    bring_home(start->destination_arn, region);
  }
}

std::optional<Error> find_elsewhere(const Request& request, std::string_view region) {
  if (const auto* list = std::get_if<ListMessageMoveTasks>(&request))
    if (is_elsewhere(list->source_arn, region)) return no_resource("SourceArn");
  if (const auto* start = std::get_if<StartMessageMoveTask>(&request)) {
    if (is_elsewhere(start->source_arn, region)) return no_resource("SourceArn");
    if (is_elsewhere(start->destination_arn, region)) return no_resource("DestinationArn");
  }
  if (std::holds_alternative<CancelMessageMoveTask>(request)) {
    const auto source = broker::queue_of(request);
    if (source && source->region != region) return no_resource("SourceArn");
  }
  return std::nullopt;
}

}  // namespace stanchion::service

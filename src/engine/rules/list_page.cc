#include "engine/rules/list_page.h"

#include "base/text.h"
#include "model/limits.h"

namespace stanchion::engine {

Answer<Page> page_of(const std::optional<std::int64_t>& max_results,
                     const std::optional<std::string>& next_token) {
  Page page;
  const std::int64_t asked = max_results.value_or(0);
  if (asked < 0 || asked > limits::kListResultsMax)
    return refuse(
        ErrorCode::kInvalidParameterValue,
        "Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer "
        "between 1 and 1000.");
  page.has_tokens = asked > 0;
  page.size = static_cast<std::size_t>(asked > 0 ? asked : limits::kListResultsMax);
  if (next_token && !next_token->empty()) {
    const auto name = from_base64(*next_token);
    if (!name || name->empty() || name->size() > limits::kQueueNameSizeMax)
      return refuse(ErrorCode::kInvalidParameterValue, "Invalid or expired next token.");
    page.after = *name;
  }
  return page;
}

void cut_to_page(QueueListResult& result, const Page& page) {
  if (result.queues.size() <= page.size) return;
  result.queues.resize(page.size);
  if (page.has_tokens) result.next_token = to_base64(result.queues.back().name);
}

}  // namespace stanchion::engine

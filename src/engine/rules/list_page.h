// The pages of ListQueues and ListDeadLetterSourceQueues, which use the same paging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "model/error.h"
#include "model/reply.h"

namespace stanchion::engine {

// In order of names; the token is the last name seen.
struct Page {
  std::string after;
  std::size_t size = 0;
  bool has_tokens = false;  // Without MaxResults there is one page and never a token.
};

Answer<Page> page_of(const std::optional<std::int64_t>& max_results,
                     const std::optional<std::string>& next_token);

void cut_to_page(QueueListResult& result, const Page& page);

}  // namespace stanchion::engine

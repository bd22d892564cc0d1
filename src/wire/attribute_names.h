// Names of message attributes are unique within a message; both decoders check that here.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/limits.h"
#include "model/request.h"

namespace stanchion::wire {

// Whether `attributes` has one of that name. A message with too many attributes is refused for
// their number, so beyond that number nothing is compared and a long list costs no more than its
// length.
inline bool names_attribute(const std::vector<MessageAttribute>& attributes,
                            std::string_view name) {
  return attributes.size() <= limits::kMessageAttributesMax &&
         std::ranges::find(attributes, name, &MessageAttribute::name) != attributes.end();
}

}  // namespace stanchion::wire

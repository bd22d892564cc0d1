#include "model/queue_attributes.h"

#include <algorithm>

namespace stanchion {

bool RedriveAllowPolicy::allows(const std::string& source_arn) const {
  switch (permission) {
    case Permission::kAllowAll:
      return true;
    case Permission::kDenyAll:
      return false;
    case Permission::kByQueue:
      return std::ranges::find(source_arns, source_arn) != source_arns.end();
  }
  return false;
}

}  // namespace stanchion

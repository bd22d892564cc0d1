// Records of the control log as a person reads them, one line each.
#pragma once

#include <string>

#include "fleet/control_record.h"

namespace stanchion::cli {

std::string describe(const fleet::ControlRecord& record);

}  // namespace stanchion::cli

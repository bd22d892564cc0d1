// What the settings mean to a node of a fleet.
#pragma once

#include "base/result.h"
#include "member/member.h"
#include "settings/settings.h"

namespace stanchion::cli {

Result<member::MemberOptions> to_member_options(const settings::Settings& settings);

}  // namespace stanchion::cli

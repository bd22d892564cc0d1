// What the settings mean to the parts of the server.
#pragma once

#include <string>
#include <vector>

#include "broker/queue_quota.h"
#include "console/server_page.h"
#include "net/http_limits.h"
#include "service/page_guard.h"
#include "settings/settings.h"

namespace stanchion::server {

net::HttpLimits to_http_limits(const settings::LimitSettings& l);

broker::QueueLimits queue_limits(const settings::LimitSettings& l);

// The names that the settings give the server, in any place.
service::PageGuard make_page_guard(const settings::ServerSettings& server);

// The settings in force, as the console shows them: without secrets.
std::vector<console::ServerRow> rows_of(settings::Settings settings);

}  // namespace stanchion::server

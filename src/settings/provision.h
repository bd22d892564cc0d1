// Applies the queues of the settings at the start: creates them, or changes them where they differ.
//
// Nothing that the settings do not name is touched: other queues, other attributes and other tags
// stay as they are.
#pragma once

#include <functional>

#include "base/result.h"
#include "model/reply.h"
#include "model/request.h"
#include "settings/settings.h"

namespace stanchion::settings {

// Executes one request and waits for its reply.
using Ask = std::function<Reply(Request)>;

struct Provisioned {
  std::size_t created = 0;
  std::size_t changed = 0;
};

// First every queue without its dead-letter queue, then the redrive policies, so that the order in
// the file does not matter. The failure names the queue and the setting.
Result<Provisioned> provision_queues(const Settings& settings, const Ask& ask);

}  // namespace stanchion::settings

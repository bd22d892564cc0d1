// Messages as JSON, for processes and functions that handle them.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "worker/task.h"

namespace stanchion::runner {

// {"color":{"dataType":"String","stringValue":"red"}}; binary values are base64. With `lists` each
// has the empty lists besides that Lambda's records have.
boost::json::object message_attributes_json(const worker::TaskInformation& task, bool lists);

boost::json::object attributes_json(const worker::TaskInformation& task);

}  // namespace stanchion::runner

// Answers of the console's handlers: JSON that nobody keeps.
#pragma once

#include <boost/json/fwd.hpp>
#include <string_view>

#include "net/http_message.h"

namespace stanchion::console {

net::HttpResponse console_answer(int status, const boost::json::object& value);

// {"message": …}, which the console shows.
net::HttpResponse console_refusal(int status, std::string_view message);

}  // namespace stanchion::console

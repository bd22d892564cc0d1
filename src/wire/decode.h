// Decodes an HTTP call into a request of the model: which protocol, which action, which values.
#pragma once

#include "model/error.h"
#include "model/request.h"
#include "wire/http_call.h"
#include "wire/queue_url.h"

namespace stanchion::wire {

// Whether a Content-Type is that of the JSON protocol, or of the forms that Query sends.
bool is_json_type(std::string_view content_type);
bool is_form_type(std::string_view content_type);

// Whether an Accept header asks for JSON rather than XML.
bool accepts_json(std::string_view accept);

// Every call is assigned a protocol, so that even a meaningless call can be answered in one.
Protocol detect(const HttpCall& call);

// `protocol` is what detect() says. The sender of messages is not known here: the caller of decode() fills in `sender_id`.
//
// An InvalidAction without a message means that the call names no action at all.
Answer<Request> decode(const HttpCall& call, Protocol protocol, const DecodeContext& context);

}  // namespace stanchion::wire

#include "service/call_guard.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "model/error_names.h"
#include "service/authorizer.h"

namespace stanchion::service {
namespace {

constexpr std::uint8_t kVersion = 1;
// More than the protocols let a client send.
constexpr std::size_t kTagsMax = 4'096;

class Refusing final : public broker::RequestGuard {
 public:
  explicit Refusing(Error error) : error_(std::move(error)) {}
  std::optional<Error> check(const broker::GuardedQueue*) override { return error_; }
  std::string pack() const override {
    return std::string(1, '\0');  // Of no version: it refuses there, too.
  }

 private:
  const Error error_;
};

// A client may try again: while keys or releases are being changed, one node has what another lacks.
broker::Guard refusing(std::string message) {
  return std::make_unique<Refusing>(Error{ErrorCode::kServiceUnavailable, std::move(message)});
}

void put(ByteWriter& out, const Caller& caller) {
  // Lists all members, so that a new one is not forgotten.
  const auto& [account, arn, sender_id, region, verified, user, access_key_id, keys, source_ip,
               secure, user_agent, referer] = caller;
  for (const std::string* text : {&account, &arn, &sender_id, &region, &user, &access_key_id,
                                  &source_ip, &user_agent, &referer})
    out.text(*text);
  out.u8(verified);
  out.u8(secure);
}

void take(ByteReader& in, Caller& caller) {
  for (std::string* text :
       {&caller.account, &caller.arn, &caller.sender_id, &caller.region, &caller.user,
        &caller.access_key_id, &caller.source_ip, &caller.user_agent, &caller.referer})
    *text = in.text();
  caller.verified = in.u8() != 0;
  caller.secure = in.u8() != 0;
}

void put(ByteWriter& out, const CallGuard::Call& call) {
  const auto& [caller, action, queue, tags, tag_keys, refusal] = call;
  out.u8(kVersion);
  out.u8(caller != nullptr);
  if (caller) put(out, *caller);
  out.text(name_of(action));
  for (const std::string* text : {&queue.account, &queue.region, &queue.name}) out.text(*text);
  out.varint(tags.size());
  for (const auto& [key, value] : tags) out.text(key), out.text(value);
  out.varint(tag_keys.size());
  for (const std::string& key : tag_keys) out.text(key);
  out.u8(refusal.has_value());
  if (!refusal) return;
  out.text(name_of(refusal->code));
  out.text(refusal->message);
}

// False if the bytes are damaged, or mean something that only another release knows.
bool take(ByteReader& in, CallGuard::Call& call, Caller& caller, bool& has_caller) {
  if (in.u8() != kVersion) return false;
  has_caller = in.u8() != 0;
  if (has_caller) take(in, caller);
  const auto action = find_action(in.text());
  for (std::string* text : {&call.queue.account, &call.queue.region, &call.queue.name})
    *text = in.text();
  const std::size_t tags = in.count();
  for (std::size_t i = 0; i < tags && tags <= kTagsMax; ++i) {
    std::string key(in.text());
    call.tags[std::move(key)] = in.text();
  }
  const std::size_t keys = in.count();
  for (std::size_t i = 0; i < keys && keys <= kTagsMax; ++i) call.tag_keys.emplace_back(in.text());
  if (in.u8() != 0) {
    const auto code = error_of_name(in.text());
    call.refusal = Error{code.value_or(ErrorCode::kInvalidParameterValue), std::string(in.text())};
  }
  if (action) call.action = *action;
  return in.ok() && in.at_end() && action && tags <= kTagsMax && keys <= kTagsMax;
}

}  // namespace

std::optional<Error> CallGuard::check(const broker::GuardedQueue* queue) {
  if (call_.caller) {
    if (std::exchange(checked_, true))
      if (auto gone = authenticator_.recheck(*call_.caller)) return gone;
    if (auto denied = authorize_by_policy(
            {*call_.caller, call_.action, call_.queue, call_.tags, call_.tag_keys}, queue,
            clock_.now()))
      return denied;
  }
  return queue == nullptr ? std::nullopt : call_.refusal;
}

std::string CallGuard::pack() const {
  std::string bytes;
  ByteWriter out(bytes);
  put(out, call_);
  return bytes;
}

broker::Guard CallGuard::unpack(const Authenticator& authenticator, os::Clock& clock,
                                std::string_view packed) {
  Call call;
  auto caller = std::make_shared<Caller>();
  bool has_caller = false;
  ByteReader in(packed);
  if (!take(in, call, *caller, has_caller))
    return refusing(
        "The node that serves this queue runs another release and does not understand who calls.");
  if (has_caller) {
    caller->keys = authenticator.keys();
    const KeyOwner* owner = caller->keys ? caller->keys->find(caller->access_key_id) : nullptr;
    if (owner == nullptr || owner->account != caller->account || owner->user != caller->user)
      return refusing(
          fmt::format("The node that serves this queue does not know the access key {}. Configure "
                      "all nodes of the fleet with the same keys.",
                      caller->access_key_id));
    call.caller = std::move(caller);
  }
  return std::make_unique<CallGuard>(authenticator, clock, std::move(call));
}

}  // namespace stanchion::service

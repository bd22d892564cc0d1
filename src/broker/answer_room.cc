#include "broker/answer_room.h"

namespace stanchion::broker {

AnswerRoom::Claim AnswerRoom::claim(const Reply& reply) {
  const auto* received = reply ? std::get_if<ReceiveMessageResult>(&*reply) : nullptr;
  if (received == nullptr || received->messages.empty()) return {};
  std::size_t bytes = 0;
  for (const ReceivedMessage& message : received->messages) bytes += message.content->footprint();
  claimed_ += bytes;
  return {shared_from_this(), bytes};
}

void AnswerRoom::give_back(std::size_t bytes) {
  claimed_ -= bytes;
  if (anyone_waits_ && has_room()) tell();
}

void AnswerRoom::wait(const void* who, Loop& loop, Task then) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({who, &loop, std::move(then)});
    anyone_waits_ = true;
  }
  // What was given back before that has told nobody.
  if (has_room()) tell();
}

// Posted with the mutex held, so that nothing is posted to a loop that has said it waits no longer.
void AnswerRoom::tell() {
  const std::lock_guard lock(mutex_);
  anyone_waits_ = false;
  for (Waiting& one : std::exchange(waiting_, {})) one.loop->post(std::move(one.then));
}

void AnswerRoom::wait_no_longer(const void* who) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [who](const Waiting& one) { return one.who == who; });
  anyone_waits_ = !waiting_.empty();
}

}  // namespace stanchion::broker

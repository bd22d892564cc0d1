// How many bytes of messages are in answers that were decided and have not reached their connection
// yet, over all shards; and who waits until there are fewer. Any thread.
//
// An answer may keep messages in memory that were evicted since, and others of the same messages were
// read again: so what is on its way is not counted by the shards. A receive asks for room before it
// takes anything, and claims what it has taken: all claims together exceed the maximum by one answer
// of each shard at most.
//
//   AR1  A claim is given back when it is destroyed.
//   AR2  Who waits is told once, on its loop, when an eighth of the room is free, unless it said before
//        that it waits no longer.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "broker/loop.h"
#include "model/reply.h"

namespace stanchion::broker {

class AnswerRoom : public std::enable_shared_from_this<AnswerRoom> {
 public:
  explicit AnswerRoom(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  class Claim {
   public:
    Claim() = default;
    Claim(std::shared_ptr<AnswerRoom> room, std::size_t bytes)
        : room_(std::move(room)), bytes_(bytes) {}
    Claim(Claim&& other) noexcept = default;
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (room_) room_->give_back(bytes_);
    }
    bool is_empty() const { return room_ == nullptr; }

   private:
    std::shared_ptr<AnswerRoom> room_;  // Null: nothing is claimed.
    std::size_t bytes_ = 0;
  };

  // Full for everybody while anybody waits: otherwise those that do not wait could take all room that
  // there is before those that wait are told.
  bool is_full() const { return claimed_ >= bytes_max_ || anyone_waits_; }
  std::size_t claimed() const { return claimed_; }
  // For the messages in the answer, even if the room is full.
  Claim claim(const Reply& reply);

  // `who` must not wait already.
  void wait(const void* who, Loop& loop, Task then);
  // After this nothing more is posted for `who`.
  void wait_no_longer(const void* who);

 private:
  struct Waiting {
    const void* who;
    Loop* loop;
    Task then;
  };
  bool has_room() const { return claimed_ <= bytes_max_ - bytes_max_ / 8; }
  void give_back(std::size_t bytes);
  void tell();

  const std::size_t bytes_max_;
  std::atomic<std::size_t> claimed_ = 0;
  std::atomic<bool> anyone_waits_ = false;
  std::mutex mutex_;
  std::vector<Waiting> waiting_;  // Guarded by mutex_.
};

}  // namespace stanchion::broker

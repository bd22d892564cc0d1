// What is to happen to the messages of a queue that can be paused, by the tags of its paused queue.
//
//   running ─pause()─▶ paused ─resume()─▶ resuming ─the paused queue is empty─▶ running
//
//   running   Messages are handled, except those of groups that were paused by a job.
//   paused    Messages are moved to the paused queue.
//   resuming  Messages of the paused queue are handled; those of a FIFO queue still go through the
//             paused queue, behind the ones that wait there, so that order is kept.
//
// The tags are durable and shared: a worker that starts later, or runs elsewhere, follows them as
// well. It looks at them every `interval`. So that no two workers act on different modes of a FIFO
// queue, nothing begins for two intervals after the mode changed, or after the first look, before
// which it may have changed; and nothing begins while the last look is older than that. The time is
// an argument. Not thread-safe.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "client/types.h"
#include "worker/options.h"
#include "worker/task.h"

namespace stanchion::worker {

class PauseWatch {
 public:
  static constexpr const char* kPausedTag = "stanchion:paused";
  static constexpr const char* kResumingTag = "stanchion:resuming";
  static constexpr std::string_view kGroupTag = "stanchion:paused-group:";
  // A queue has room for 50 tags. When more groups are paused, the whole queue is.
  static constexpr std::size_t kGroupsMax = 40;

  PauseWatch(bool fifo, std::chrono::milliseconds interval) : fifo_(fifo), interval_(interval) {}

  // Two groups may have the same tag; they are paused together then.
  static std::string tag_of_group(std::string_view group) {
    std::uint64_t hash = 14695981039346656037u;
    for (const char c : group) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    return fmt::format("{}{:016x}", kGroupTag, hash);
  }

  // A look at the tags of the paused queue, which began at `now`. False, and nothing changes, if the
  // answer to a later look was here before.
  bool observe(const client::StringMap& tags, Instant now) {
    if (seen_ && now < *seen_) return false;
    std::set<std::string, std::less<>> groups;
    for (const auto& [key, value] : tags)
      if (key.starts_with(kGroupTag)) groups.insert(key);
    const PauseMode mode = tags.contains(kPausedTag)     ? PauseMode::kPaused
                           : tags.contains(kResumingTag) ? PauseMode::kResuming
                                                         : PauseMode::kRunning;
    // A group is moved two intervals after its tag anyway, by the worker that has paused it.
    if (fifo_ && (!seen_ || mode != mode_)) act_from_ = now + 2 * interval_;
    seen_ = now;
    mode_ = mode;
    groups_ = std::move(groups);
    return true;
  }

  // Whether messages may be begun with, or moved.
  bool may_begin(Instant now) const {
    if (!seen_) return false;
    return !fifo_ || (now >= act_from_ && now - *seen_ <= 2 * interval_);
  }
  // Whether a message of the queue itself is moved to the paused queue, and not handled.
  bool moves(std::string_view group) const {
    if (mode_ == PauseMode::kPaused) return true;
    if (!fifo_) return false;
    return mode_ == PauseMode::kResuming || groups_.contains(tag_of_group(group));
  }
  // Whether messages of the paused queue are handled.
  bool comes_back() const { return mode_ == PauseMode::kResuming; }

  PauseMode mode() const { return mode_; }
  const std::set<std::string, std::less<>>& groups() const { return groups_; }
  std::chrono::milliseconds interval() const { return interval_; }

 private:
  bool fifo_;
  std::chrono::milliseconds interval_;
  PauseMode mode_ = PauseMode::kRunning;
  std::set<std::string, std::less<>> groups_;
  std::optional<Instant> seen_;
  Instant act_from_{};
};

}  // namespace stanchion::worker

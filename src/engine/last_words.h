// What queues had counted when they were deleted, for a while: those who write minutes down come
// when the minute is over, and should not miss what happened in a queue that is gone by then.
//
// Follows from the facts since the last checkpoint, and is not in checkpoints.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "base/time.h"
#include "model/activity.h"
#include "model/ids.h"
#include "model/limits.h"
#include "model/size_distribution.h"

namespace stanchion::engine {

struct LastWord {
  QueueRef queue;
  Instant created;
  Instant deleted;
  Activity activity;
  RecentSizes sent_sizes;
};

class LastWords {
 public:
  void add(LastWord word) {
    while (!words_.empty() && (words_.size() >= limits::kLastWordsMax ||
                               words_.front().deleted + limits::kLastWordsKept <= word.deleted))
      words_.pop_front();
    words_.push_back(std::move(word));
  }

  const std::deque<LastWord>& all() const { return words_; }

 private:
  std::deque<LastWord> words_;  // In the order in which the queues were deleted.
};

}  // namespace stanchion::engine

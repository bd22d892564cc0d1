// What a look at a queue must show: every message, as it is, and nothing else; over several pages,
// every message that was there all the time, once, whatever happened in between.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/reply.h"
#include "model/request.h"
#include "tests/model/reference_model.h"

namespace stanchion::reference {

// All pages of one look, made at one moment. Returns the places of the messages that were seen.
std::vector<std::uint64_t> check_whole_peek(const Queue& queue, const StanchionPeek& request,
                                            const std::vector<PeekedMessage>& seen);

void check_groups(const Queue& queue, const std::vector<Passage>& passages,
                  const std::vector<StanchionGroupsResult::Group>& groups);

// A walk over a queue that changes between the pages.
class PeekWalk {
 public:
  explicit PeekWalk(const Queue& queue);

  // Before each page: what may be seen.
  void look(const Queue& queue);
  void take(const StanchionPeekResult& page);
  // After the last page.
  void check_end(const Queue& queue) const;
  // A lane may be visited again after a restart.
  void restarted() { restarted_ = true; }

  int queue_number() const { return number_; }
  const std::optional<std::string>& token() const { return token_; }

 private:
  // Messages that a client cannot tell apart have the same key.
  using Key = std::tuple<std::int64_t, std::string, std::string>;
  static Key key_of(const Message& message);

  const int number_;
  std::set<std::uint64_t> at_begin_;
  std::map<std::uint64_t, Key> lived_;
  std::map<Key, std::size_t> seen_;
  std::optional<std::string> token_;
  bool restarted_ = false;
};

}  // namespace stanchion::reference

// The line of those who ask the history of the queues something. One thread answers; accounts take
// turns, and so do the questions of an account. A long question is answered in several turns.
//
//   ask ─▶ line of its account ─▶ a turn on the history's thread ─▶ done
//                ▲                          │ more to read
//                └──────────────────────────┘
//
//   QL1  A question that had a turn is behind all others of its account, and its account behind all
//        other accounts that wait. So a question waits for one turn of each other account, and not
//        for all that another account asks.
//   QL2  At most kQuestionsOfAccountMax of one account wait, and kQuestionsMax in all, except that an
//        account of which none waits is never turned away: there are as many accounts as the settings
//        name, and so no others can keep all places taken.
//   QL3  What questions hold between two turns is kHeldMax bytes at most, and what one turn adds:
//        beyond that the question whose turn it was goes on until it is done, at the cost of QL1.
//
// Any thread may ask. Everything is answered in the background, as Work::kHistory, and the writing
// of minutes takes its turn like everybody else.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "broker/background.h"
#include "history/history.h"

namespace stanchion::monitoring {

class QuestionLine {
 public:
  static constexpr std::size_t kQuestionsMax = 256;
  static constexpr std::size_t kQuestionsOfAccountMax = 64;
  static constexpr std::size_t kHeldMax = std::size_t{16} << 20;

  // What became of a question in one turn.
  struct Turn {
    bool more = false;                 // It wants another one …
    std::size_t held = 0;              // … and keeps so many bytes until then.
    std::optional<Failure> failure{};  // Why it could not read, if so: it is done.
  };
  // With nullptr there is no history, now or any more, and the question is done.
  using Question = std::move_only_function<Turn(const history::History*)>;
  // Gives a question a turn, on the history's thread. `stopping`: without a history.
  using Answer = std::function<Turn(Question& question, bool stopping)>;

  QuestionLine(broker::Background& background, Answer answer);

  // False: too many wait, or no more are taken.
  [[nodiscard]] bool ask(const std::string& account, Question question);

  // Turns away all that wait, and whoever comes later.
  void stop();

 private:
  struct Entry {
    std::string account;
    Question question;
    std::size_t held = 0;
  };

  void give_a_turn();
  // With mutex_ held.
  Entry take();
  void put_back(Entry entry);

  broker::Background& background_;
  const Answer answer_;

  std::mutex mutex_;
  std::map<std::string, std::deque<Entry>> by_account_;  // None is empty.
  std::deque<std::string> turns_;                        // These accounts, the next one first.
  std::size_t waiting_ = 0;
  std::size_t held_ = 0;  // By those that wait.
  bool at_work_ = false;  // A turn is under way or posted.
  bool stopping_ = false;
};

}  // namespace stanchion::monitoring

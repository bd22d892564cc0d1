#include "monitoring/question_line.h"

#include <utility>

namespace stanchion::monitoring {

QuestionLine::QuestionLine(broker::Background& background, Answer answer)
    : background_(background), answer_(std::move(answer)) {}

bool QuestionLine::ask(const std::string& account, Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    const auto found = by_account_.find(account);
    const std::size_t own = found == by_account_.end() ? 0 : found->second.size();
    if (own > 0 && (waiting_ >= kQuestionsMax || own >= kQuestionsOfAccountMax)) return false;
    std::deque<Entry>& line = by_account_[account];
    if (line.empty()) turns_.push_back(account);
    line.push_back({account, std::move(question)});
    ++waiting_;
    if (std::exchange(at_work_, true)) return true;
  }
  background_.run(broker::Work::kHistory, [this] { give_a_turn(); });
  return true;
}

void QuestionLine::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
}

void QuestionLine::give_a_turn() {
  std::optional<Entry> entry;
  bool stopping = false;
  {
    const std::lock_guard lock(mutex_);
    entry = take();
    stopping = stopping_;
  }
  const Turn turn = answer_(entry->question, stopping);
  {
    const std::lock_guard lock(mutex_);
    if (turn.more && !turn.failure && !stopping) {
      entry->held = turn.held;
      put_back(*std::move(entry));
    }
    at_work_ = waiting_ > 0;
    if (!at_work_) return;
  }
  background_.run(broker::Work::kHistory, [this] { give_a_turn(); });
}

QuestionLine::Entry QuestionLine::take() {
  const auto line = by_account_.find(turns_.front());
  turns_.pop_front();
  Entry entry = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty())
    by_account_.erase(line);
  else
    turns_.push_back(entry.account);
  --waiting_;
  held_ -= entry.held;
  return entry;
}

void QuestionLine::put_back(Entry entry) {
  ++waiting_;
  held_ += entry.held;
  std::deque<Entry>& line = by_account_[entry.account];
  if (held_ > kHeldMax) {
    std::erase(turns_, entry.account);
    turns_.push_front(entry.account);
    line.push_front(std::move(entry));
    return;
  }
  if (line.empty()) turns_.push_back(entry.account);
  line.push_back(std::move(entry));
}

}  // namespace stanchion::monitoring

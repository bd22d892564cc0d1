#include "worker/pause_control.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "worker/copies.h"

namespace stanchion::worker {
namespace {

// The numbers of messages are approximate.
constexpr int kEmptyLooks = 2;

bool is_empty(const client::GetQueueAttributesResult& result) {
  return std::ranges::all_of(result.attributes,
                             [](const auto& attribute) { return attribute.second == "0"; });
}

client::GetQueueAttributesRequest counts_of(const std::string& queue_url) {
  return {
      .queue_url = queue_url,
      .attribute_names = {"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
                          "ApproximateNumberOfMessagesDelayed"}};
}

}  // namespace

PauseControl::PauseControl(client::Client& client, WorkerLoop& loop, std::string paused_queue_url,
                           bool fifo, std::chrono::milliseconds interval,
                           const client::StringMap& tags, Instant now, Outside outside)
    : client_(client),
      loop_(loop),
      url_(std::move(paused_queue_url)),
      fifo_(fifo),
      outside_(std::move(outside)),
      watch_(fifo_, interval) {
  CHECK(interval > std::chrono::milliseconds(0), "there is time between two looks");
  CHECK(outside_.is_idle && outside_.stop_coming_back && outside_.changed && outside_.report,
        "the queue is asked and told everything");
  const bool first = watch_.observe(tags, now);
  CHECK(first, "PA1: the first look is the oldest");
  // Workers that are gone may have left something there.
  recheck_ = fifo_ && watch_.mode() == PauseMode::kRunning;
}

bool PauseControl::moves(const TaskInformation& task) const {
  return watch_.moves(group_of(task));
}

void PauseControl::pause(const TaskInformation& task, std::function<void(bool moves)> then) {
  CHECK(then != nullptr, "PA2: somebody moves the message");
  const std::string group = group_of(task);
  if (!fifo_ || watch_.moves(group)) return then(true);
  // First the tag, so that other workers know it when the group's next message can be received.
  const bool full = watch_.groups().size() >= PauseWatch::kGroupsMax;
  const std::string tag = full ? PauseWatch::kPausedTag : PauseWatch::tag_of_group(group);
  using Tagged = client::Outcome<client::TagQueueResult>;
  client_.tag_queue(
      {.queue_url = url_, .tags = {{tag, "yes"}}},
      loop_.counted([this, then = std::move(then), id = task.message_id](const Tagged& outcome) {
        if (!outcome) {
          outside_.report("cannot pause message " + id + ": " + outcome.error().to_string() +
                          "; it is retried");
          return then(false);
        }
        look();
        // PA2.
        loop_.at(Clock::now() + 2 * watch_.interval(), [then] { then(true); });
      }));
}

std::optional<Instant> PauseControl::tick(Instant now) {
  if (loop_.is_stopping()) return std::nullopt;
  if (now - looked_at_ >= watch_.interval()) look();
  return looked_at_ + watch_.interval();
}

// Reads the tags, and does what they say.
void PauseControl::look() {
  if (loop_.is_stopping()) return;
  looked_at_ = Clock::now();
  using Listed = client::Outcome<client::ListQueueTagsResult>;
  client_.list_queue_tags({.queue_url = url_}, loop_.counted([this, asked = looked_at_](
                                                                 const Listed& outcome) {
    if (outcome) return looked(outcome->tags, asked);
    if (!loop_.is_stopping())
      outside_.report("cannot read whether the queue is paused: " + outcome.error().to_string());
  }));
}

void PauseControl::looked(const client::StringMap& tags, Instant asked) {
  CHECK(asked <= looked_at_, "PA1: the tags were asked for before they came");
  const PauseMode before = watch_.mode();
  // As of the moment at which the tags were asked for.
  if (!watch_.observe(tags, asked)) return;
  const PauseMode mode = watch_.mode();
  if (before == PauseMode::kResuming && mode != PauseMode::kResuming) {
    outside_.stop_coming_back();
    CHECK(!may_come_back(asked), "PA1: nothing comes back after the end of a resumption");
  }
  if (before == PauseMode::kResuming && mode == PauseMode::kRunning) recheck_ = true;
  check_empty();
  outside_.changed();
}

// Ends the resumption when the paused queue is empty. A worker that has not noticed that end may
// have moved one more message of a FIFO queue: nothing begins until it is known that none did.
void PauseControl::check_empty() {
  const bool ends = watch_.comes_back() && outside_.is_idle();
  const bool rechecks = recheck_ && watch_.may_begin(Clock::now());
  if (!ends && !rechecks) return;
  using Counts = client::Outcome<client::GetQueueAttributesResult>;
  client_.get_queue_attributes(counts_of(url_), loop_.counted([this, ends](const Counts& outcome) {
    if (outcome && !loop_.is_stopping()) checked_empty(ends, is_empty(*outcome));
  }));
}

void PauseControl::checked_empty(bool ends, bool empty) {
  empty_looks_ = ends && empty ? empty_looks_ + 1 : 0;
  if (empty_looks_ >= kEmptyLooks) return change_tag(PauseWatch::kResumingTag, false);
  if (ends) return;
  recheck_ = false;
  if (!empty && watch_.groups().empty() && watch_.mode() == PauseMode::kRunning && fifo_)
    change_tag(PauseWatch::kResumingTag, true);
  outside_.changed();
}

void PauseControl::change_tag(const char* tag, bool set) {
  const auto then = loop_.counted([this](const auto& changed) {
    if (!changed) outside_.report("cannot end the resumption: " + changed.error().to_string());
    look();
  });
  if (set)
    client_.tag_queue({url_, {{tag, "yes"}}}, then);
  else
    client_.untag_queue({url_, {tag}}, then);
}

client::Outcome<PauseMode> PauseControl::set_paused(bool paused) {
  const char* const tag = paused ? PauseWatch::kPausedTag : PauseWatch::kResumingTag;
  auto tagged = client_.tag_queue({url_, {{tag, "yes"}}});
  if (!tagged) return tagged.error();
  if (!paused)
    if (auto error = untag_paused()) return *std::move(error);
  const std::lock_guard lock(loop_.mutex());
  look();
  return paused ? PauseMode::kPaused : PauseMode::kResuming;
}

std::optional<client::Error> PauseControl::untag_paused() {
  auto listed = client_.list_queue_tags({.queue_url = url_});
  if (!listed) return listed.error();
  std::vector<std::string> keys;
  for (const auto& [key, value] : listed->tags)
    if (key == PauseWatch::kPausedTag || key.starts_with(PauseWatch::kGroupTag))
      keys.push_back(key);
  if (keys.empty()) return std::nullopt;
  auto untagged = client_.untag_queue({url_, std::move(keys)});
  if (!untagged) return untagged.error();
  return std::nullopt;
}

}  // namespace stanchion::worker

// Queues that are paused: their messages wait in another queue, and come back from there.
#include <algorithm>
#include <utility>

#include "worker/copies.h"
#include "worker/impl.h"

namespace stanchion::worker {
namespace {

const client::StringMap& yes(client::StringMap& tags, const std::string& key) {
  tags[key] = "yes";
  return tags;
}

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

std::optional<client::Error> Worker::Impl::add_paused_queue(Source& source) {
  const QueueOptions& options = source.options;
  auto url = queues_.find_or_make({.name = options.paused_queue.empty()
                                               ? with_suffix(source.name, "-paused")
                                               : options.paused_queue,
                                   .attributes = {{"MessageRetentionPeriod", "1209600"}},
                                   .max_receive_count = 0});
  if (!url) return url.error();
  auto tags = client_.list_queue_tags({.queue_url = *url});
  if (!tags) return tags.error();
  source.watch.emplace(source.name.ends_with(".fifo"), options_.pause_check);
  source.watch->observe(tags->tags, Clock::now());
  // Workers that are gone may have left something there.
  source.recheck = source.name.ends_with(".fifo") && source.watch->mode() == PauseMode::kRunning;
  QueueOptions paused = options;
  paused.url = *url;
  paused.pausable = false;
  if (auto error = add_source(std::move(paused))) return error;
  source.paused = sources_.back().get();
  source.paused->main = &source;
  return std::nullopt;
}

bool Worker::Impl::moves(const Source& source, const TaskInformation& task) const {
  return source.watch && source.watch->moves(group_of(task));
}

void Worker::Impl::pause_task(Source& source, const Task& task) {
  if (!source.watch) {
    report(source, "message " + task->message_id +
                       (source.main != nullptr
                            ? " was paused while its queue is being resumed; it is retried"
                            : " was paused, but its queue cannot be; set QueueOptions::pausable"));
    settle(source, task, Verdict::retry_with_backoff());
    return;
  }
  const std::string group = group_of(*task);
  if (!source.name.ends_with(".fifo") || source.watch->moves(group)) return move(source, task);
  // First the tag, so that other workers know it when the group's next message can be received.
  client::StringMap tags;
  const bool full = source.watch->groups().size() >= PauseWatch::kGroupsMax;
  yes(tags, full ? PauseWatch::kPausedTag : PauseWatch::tag_of_group(group));
  client_.tag_queue({.queue_url = source.paused->options.url, .tags = std::move(tags)},
                    counted(source, [this, &source,
                                     task](const client::Outcome<client::TagQueueResult>& outcome) {
                      if (!outcome) {
                        report(source, "cannot pause message " + task->message_id + ": " +
                                           outcome.error().to_string() + "; it is retried");
                        settle(source, task, Verdict::retry_with_backoff());
                        return;
                      }
                      look(source);
                      loop_.at(Clock::now() + 2 * source.watch->interval(),
                               [this, &source, task] { move(source, task); });
                    }));
}

void Worker::Impl::move(Source& source, const Task& task) {
  send_on(source, task, source.paused->options.url, &QueueMetrics::paused);
}

// Reads the tags, and does what they say.
void Worker::Impl::look(Source& source) {
  if (loop_.is_stopping()) return;
  source.looked_at = Clock::now();
  using Listed = client::Outcome<client::ListQueueTagsResult>;
  const auto then = [this, &source, asked = source.looked_at](const Listed& outcome) {
    if (outcome) return looked(source, outcome->tags, asked);
    if (!loop_.is_stopping())
      report(source, "cannot read whether the queue is paused: " + outcome.error().to_string());
  };
  client_.list_queue_tags({.queue_url = source.paused->options.url}, counted(source, then));
}

void Worker::Impl::looked(Source& source, const client::StringMap& tags, Instant asked) {
  const PauseMode before = source.watch->mode();
  // As of the moment at which the tags were asked for.
  if (!source.watch->observe(tags, asked)) return;
  const PauseMode mode = source.watch->mode();
  if (before == PauseMode::kResuming && mode != PauseMode::kResuming) stop_coming_back(source);
  if (before == PauseMode::kResuming && mode == PauseMode::kRunning) source.recheck = true;
  check_empty(source);
  fill_hand(*source.paused);
  wake_pool();
}

void Worker::Impl::stop_coming_back(Source& source) {
  Source& paused = *source.paused;
  paused.consumer->cancel_polls();
  paused.consumer->give_back(paused.hand.take_waiting());
}

// Ends the resumption when the paused queue is empty. A worker that has not noticed that end may
// have moved one more message of a FIFO queue: nothing begins until it is known that none did.
void Worker::Impl::check_empty(Source& source) {
  const bool idle = source.hand.size() == 0 && source.paused->hand.size() == 0;
  const bool ends = source.watch->comes_back() && idle;
  const bool rechecks = source.recheck && source.watch->may_begin(Clock::now());
  if (!ends && !rechecks) return;
  client_.get_queue_attributes(
      counts_of(source.paused->options.url),
      counted(source, [this, &source,
                       ends](const client::Outcome<client::GetQueueAttributesResult>& outcome) {
        if (!outcome || loop_.is_stopping()) return;
        const bool empty = is_empty(*outcome);
        // Twice in a row, because the numbers are approximate.
        source.empty_looks = ends && empty ? source.empty_looks + 1 : 0;
        const std::string url = source.paused->options.url;
        const auto then = [this, &source](const auto& changed) {
          if (!changed) report(source, "cannot end the resumption: " + changed.error().to_string());
          look(source);
        };
        if (source.empty_looks > 1)
          return void(
              client_.untag_queue({url, {PauseWatch::kResumingTag}}, counted(source, then)));
        if (ends) return;
        source.recheck = false;
        client::StringMap tags;
        if (!empty && source.watch->groups().empty() &&
            source.watch->mode() == PauseMode::kRunning && source.name.ends_with(".fifo"))
          client_.tag_queue({url, yes(tags, PauseWatch::kResumingTag)}, counted(source, then));
        wake_pool();
      }));
}

std::optional<Instant> Worker::Impl::look_if_due(Source& source, Instant now) {
  if (!source.watch || loop_.is_stopping()) return std::nullopt;
  if (now - source.looked_at >= source.watch->interval()) look(source);
  return source.looked_at + source.watch->interval();
}

client::Outcome<PauseMode> Worker::Impl::set_paused(const std::string& queue_url, bool paused) {
  Source* found = nullptr;
  for (const auto& source : sources_)
    if (source->options.url == queue_url && source->watch) found = source.get();
  if (found == nullptr)
    return client::Error{.code = client::code::kInvalidSettings,
                         .message = queue_url +
                                    " is no queue of this worker that can be paused; "
                                    "set QueueOptions::pausable",
                         .fault = client::Fault::kLocal};
  const std::string& url = found->paused->options.url;
  client::StringMap tags;
  auto tagged = client_.tag_queue(
      {url, yes(tags, paused ? PauseWatch::kPausedTag : PauseWatch::kResumingTag)});
  if (!tagged) return tagged.error();
  if (!paused) {
    auto listed = client_.list_queue_tags({.queue_url = url});
    if (!listed) return listed.error();
    std::vector<std::string> keys;
    for (const auto& [key, value] : listed->tags)
      if (key == PauseWatch::kPausedTag || key.starts_with(PauseWatch::kGroupTag))
        keys.push_back(key);
    if (!keys.empty()) {
      auto untagged = client_.untag_queue({url, std::move(keys)});
      if (!untagged) return untagged.error();
    }
  }
  const std::lock_guard lock(loop_.mutex());
  look(*found);
  return paused ? PauseMode::kPaused : PauseMode::kResuming;
}

client::Outcome<PauseMode> Worker::pause(const std::string& queue_url) {
  return impl_->set_paused(queue_url, true);
}

client::Outcome<PauseMode> Worker::resume(const std::string& queue_url) {
  return impl_->set_paused(queue_url, false);
}

}  // namespace stanchion::worker

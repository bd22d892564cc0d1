#include "worker/load_reporter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "worker/copies.h"

namespace stanchion::worker {
namespace {

using std::chrono::milliseconds;

constexpr const char* kVisible = "ApproximateNumberOfMessages";
constexpr const char* kInFlight = "ApproximateNumberOfMessagesNotVisible";

}  // namespace

LoadReporter::LoadReporter(client::Client& client, WorkerLoop& loop, LoadReporterOptions options,
                           Outside outside)
    : client_(client), loop_(loop), options_(options), outside_(std::move(outside)) {
  CHECK(options_.every > milliseconds(0), "there is time between two looks");
}

void LoadReporter::add(const std::string& queue_url, const LoadOptions& options) {
  queues_.push_back({.url = queue_url, .watch = LoadWatch(options)});
}

void LoadReporter::began(std::size_t queue, milliseconds age) {
  CHECK(queue < queues_.size(), "the queue was added");
  queues_[queue].oldest = std::max(queues_[queue].oldest, age);
}

std::optional<Instant> LoadReporter::tick(Instant now) {
  if ((!options_.tells && !options_.asks_queues) || loop_.is_stopping()) return std::nullopt;
  if (now < due_) return due_;
  due_ = now + options_.every;
  if (!options_.asks_queues) {
    outside_.tell();
    return due_;
  }
  for (std::size_t queue = 0; queue < queues_.size(); ++queue)
    if (!queues_[queue].asked) ask(queue);
  return due_;
}

void LoadReporter::ask(std::size_t queue) {
  CHECK(!queues_[queue].asked, "LO1: a queue is asked once at a time");
  queues_[queue].asked = true;
  ++asked_;
  client_.get_queue_attributes(
      {.queue_url = queues_[queue].url, .attribute_names = {kVisible, kInFlight}},
      loop_.counted([this, queue](const Attributes& attributes) { answered(queue, attributes); }));
}

void LoadReporter::answered(std::size_t number, const Attributes& attributes) {
  Queue& queue = queues_[number];
  CHECK(queue.asked && asked_ > 0, "LO1: an answer has its question");
  queue.asked = false;
  --asked_;
  QueueLoad& load = queue.load;
  load.measured = attributes.ok();
  if (load.measured) {
    load.visible = static_cast<std::uint64_t>(number_in(attributes->attributes, kVisible, 0));
    load.in_flight = static_cast<std::uint64_t>(number_in(attributes->attributes, kInFlight, 0));
    load.oldest_seconds = static_cast<double>(queue.oldest.count()) / 1000;
    load.signals = queue.watch.look({.at = Clock::now().time_since_epoch(),
                                     .visible = load.visible,
                                     .in_flight = load.in_flight,
                                     .completed = outside_.completed(number),
                                     .oldest = std::exchange(queue.oldest, milliseconds(0))});
  } else if (!loop_.is_stopping()) {
    outside_.report(number,
                    "cannot read the figures of the queue: " + attributes.error().to_string());
  }
  if (asked_ == 0) outside_.tell();
}

}  // namespace stanchion::worker

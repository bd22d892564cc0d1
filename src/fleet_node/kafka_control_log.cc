#include "fleet_node/kafka_control_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <set>
#include <utility>

#include "base/check.h"
#include "fleet/control_codec.h"
#include "fleet_admin/topics.h"

namespace stanchion::fleet_node {
namespace {

constexpr std::size_t kUnderWayMax = 64;
// More than a node has slots: 256 shards, each with an assignment and a release.
constexpr std::size_t kWaitingMax = 1024;
// The records that one read() passes on, so that others get their turn.
constexpr std::size_t kReadMax = 1000;

// The key by which the log is compacted, less what makes each claim and each term different: those
// were never read by anybody.
std::string slot_of(const fleet::ControlRecord& record) {
  if (std::holds_alternative<fleet::CoordinatorClaim>(record)) return "claim";
  if (const auto* assignment = std::get_if<fleet::Assignment>(&record))
    return fmt::format("assignment/{}", assignment->shard.value());
  return fleet::control_key(record);
}

}  // namespace

class KafkaControlLog::Outbox : public std::enable_shared_from_this<Outbox> {
 public:
  Outbox(kafka::KafkaConnection& connection, kafka::Partition partition)
      : connection_(connection), partition_(std::move(partition)) {}

  void append(fleet::ControlRecord record) {
    const std::lock_guard lock(mutex_);
    if (closed_ || failure_) return;
    std::string slot = slot_of(record);
    std::erase_if(waiting_, [&](const Waiting& other) { return other.slot == slot; });
    if (waiting_.size() == kWaitingMax) waiting_.pop_front();
    waiting_.push_back({std::move(slot), std::move(record)});
    send_what_may();
  }

  void when_failed(std::function<void()> failed) {
    const std::lock_guard lock(mutex_);
    failed_ = std::move(failed);
  }

  std::optional<Failure> failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting_.clear();
    failed_ = nullptr;
  }

 private:
  struct Waiting {
    std::string slot;
    fleet::ControlRecord record;
  };

  // With the mutex held.
  void send_what_may() {
    for (auto it = waiting_.begin(); it != waiting_.end() && under_way_.size() < kUnderWayMax;) {
      if (under_way_.contains(it->slot)) {
        ++it;
        continue;
      }
      const Status sent = connection_.send(
          partition_, fleet::encode_control(it->record),
          [self = shared_from_this(), slot = it->slot](const kafka::Delivery& delivery) {
            self->delivered(slot, delivery);
          },
          fleet::control_key(it->record));
      // The client has too much to do; the next beat is an occasion to try again.
      if (!sent) return;
      under_way_.insert(it->slot);
      it = waiting_.erase(it);
    }
  }

  // On the connection's thread.
  void delivered(const std::string& slot, const kafka::Delivery& delivery) {
    std::function<void()> failed;
    {
      const std::lock_guard lock(mutex_);
      under_way_.erase(slot);
      if (closed_) return;
      // What may be lost with a client that was replaced is said again: beats, and what was not read.
      if (!delivery.failure || delivery.began_anew) return send_what_may();
      failure_ = Failure{"the fleet's control log " + partition_.text() +
                         " cannot be written: " + delivery.failure->message};
      failed = failed_;
    }
    if (failed) failed();
  }

  kafka::KafkaConnection& connection_;
  const kafka::Partition partition_;
  std::mutex mutex_;
  std::list<Waiting> waiting_;
  std::set<std::string> under_way_;
  std::optional<Failure> failure_;
  std::function<void()> failed_;
  bool closed_ = false;
};

KafkaControlLog::KafkaControlLog(kafka::KafkaConnection& writing, kafka::KafkaConnection& reading,
                                 std::string fleet)
    : reading_(reading),
      fleet_(std::move(fleet)),
      outbox_(std::make_shared<Outbox>(writing, fleet_admin::control_partition(fleet_))) {}

KafkaControlLog::~KafkaControlLog() {
  outbox_->close();
}

void KafkaControlLog::follow(std::function<void()> arrived) {
  CHECK(!reader_, "the log is followed once");
  arrived_ = std::move(arrived);
  auto opened = fleet_admin::ControlReader::open(reading_, fleet_);
  if (!opened) {
    failure_ = opened.error();
    return arrived_();
  }
  reader_ = std::move(*opened);
  reader_->when_ready(arrived_);
  outbox_->when_failed(arrived_);
}

Status KafkaControlLog::read(const std::function<void(const fleet::ControlRecord&)>& visit) {
  if (!failure_) failure_ = outbox_->failure();
  if (failure_) return std::unexpected(*failure_);
  CHECK(reader_, "the log is followed before it is read");
  for (std::size_t i = 0; i < kReadMax; ++i) {
    const auto entry = reader_->next(std::chrono::milliseconds(0));
    if (!entry) return std::unexpected(entry.error());
    if (!*entry) return {};
    visit((*entry)->record);
  }
  arrived_();  // There may be more.
  return {};
}

void KafkaControlLog::append(fleet::ControlRecord record) {
  outbox_->append(std::move(record));
}

}  // namespace stanchion::fleet_node

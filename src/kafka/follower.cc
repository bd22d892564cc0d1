#include "kafka/follower.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace stanchion::kafka {

using journal::LogReader;

Result<std::unique_ptr<KafkaFollower>> KafkaFollower::open(KafkaConnection& connection,
                                                           const ShardLog& log) {
  auto reader = connection.read(log.partition, std::nullopt);
  if (!reader) return std::unexpected(reader.error());
  return std::unique_ptr<KafkaFollower>(new KafkaFollower(connection, log, std::move(*reader)));
}

Result<KafkaFollower::Progress> KafkaFollower::step(const journal::RecordVisitor& visit,
                                                    std::chrono::milliseconds timeout) {
  const auto got = reader_->next(timeout);
  if (!got) return std::unexpected(got.error());
  switch (*got) {
    case PartitionReader::Got::kEntry:
      RETURN_IF_FAILED(take(visit));
      return Progress::kEntry;
    case PartitionReader::Got::kEnd:
      RETURN_IF_FAILED(judge_.check_end(reader_->end()));
      return Progress::kEnd;
    case PartitionReader::Got::kNothing:
      return Progress::kNothing;
    case PartitionReader::Got::kTrimmed:
      if (!judge_.has_begun()) {
        RETURN_IF_FAILED(begin_anew());
        return Progress::kNothing;
      }
      trimmed_ = true;
      return fail("Kafka's partition " + log().partition.text() +
                  " was trimmed faster than it was read: copy the store of another replica");
  }
  check_failed("got", "a reading has an outcome", std::source_location::current());
}

// The log was trimmed between the question where it begins and the reading.
Status KafkaFollower::begin_anew() {
  reader_.reset();  // A partition has one reader at a time.
  auto reader = connection_.read(log().partition, std::nullopt);
  if (!reader) return std::unexpected(reader.error());
  reader_ = std::move(*reader);
  if (ready_) reader_->when_ready(ready_);
  return {};
}

void KafkaFollower::when_ready(std::function<void()> ready) {
  ready_ = std::move(ready);
  reader_->when_ready(ready_);
}

std::optional<Position> KafkaFollower::next() const {
  if (!judge_.has_begun()) return std::nullopt;
  return judge_.next();
}

Status KafkaFollower::take(const journal::RecordVisitor& visit) {
  offset_ = reader_->offset();
  const LogJudge::Judged judged = judge_.judge(offset_, reader_->bytes(), reader_->key());
  verdict_ = judged.verdict;
  too_new_ = judged.too_new;
  writer_ = judged.entry ? judged.entry->from.writer : 0;
  switch (verdict_) {
    case LogReader::Verdict::kRecords:
      index_.note(judged.entry->head.first, offset_);
      return journal::visit_records(*judged.entry, [&](Position position, std::string_view record) {
        digest_before_ = judge_.digest();
        judge_.pass(record);
        return visit(position, record);
      });
    case LogReader::Verdict::kClaim:
    case LogReader::Verdict::kVoid:
    case LogReader::Verdict::kDuplicate:
      return {};
    case LogReader::Verdict::kDamaged:
    case LogReader::Verdict::kOtherPast:
      return fail(judged.problem);
  }
  check_failed("verdict", "an entry is judged", std::source_location::current());
}

}  // namespace stanchion::kafka

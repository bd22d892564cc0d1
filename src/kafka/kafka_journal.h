// A shard's journal in a partition of Kafka, which other nodes can take over (docs/adr/0019): the
// rules are those of journal/shared_log.h, and one Kafka record is one group commit.
//
//   claim ─▶ replay: read to the end, append the claim, read to the claim ─▶ start ─▶ append…
//
// A replay costs the time to read what the log holds; a standby, which has read it before, goes on
// where its follower is.
//
// Threads: as the interface says. Events come from the connection's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "journal/journal.h"
#include "kafka/connection.h"
#include "kafka/follower.h"
#include "kafka/kafka_writer.h"
#include "os/entropy.h"

namespace stanchion::kafka {

class KafkaJournal final : public journal::Journal {
 public:
  // Of a shard whose log nobody here has read. `connection` must outlive the journal.
  static Result<std::unique_ptr<KafkaJournal>> open(KafkaConnection& connection,
                                                    const ShardLog& log, os::Entropy& entropy,
                                                    const KafkaJournalOptions& options = {});

  // Of a standby that becomes the owner: replay() has to begin where the follower is.
  KafkaJournal(std::unique_ptr<KafkaFollower> follower, os::Entropy& entropy,
               const KafkaJournalOptions& options);
  ~KafkaJournal() override;

  // Makes this node the owner, by LG3. Fails also if another node claims the shard meanwhile.
  Status replay(Position from, const journal::RecordVisitor& visit) override;
  void start(journal::JournalEvents events) override;
  Position append(std::string_view record) override { return writer().append(record); }
  void flush() override { writer().flush(); }
  bool can_be_superseded() const override { return true; }
  journal::Proof barrier() override { return writer().barrier(); }
  journal::Proof proven() const override { return writer().proven(); }
  Position durable() const override { return writer().durable(); }
  Position next_position() const override { return writer().next_position(); }
  journal::Room room() const override { return writer().room(); }
  void trim_before(Position position) override { writer().trim_before(position); }
  journal::JournalFigures figures() const override { return writer().figures(); }
  Status close() override;

  // Any thread, after replay().
  std::optional<journal::LogStall> stall() const { return writer().stall(); }
  journal::Epoch epoch() const override { return epoch_; }

 private:
  class Claim;

  KafkaWriter& writer() const;
  Status read_to_end(const journal::RecordVisitor& visit);
  Status read_to_claim(const Claim& claim, const journal::RecordVisitor& visit);
  Status claim_log(Position from, const journal::RecordVisitor& visit);

  std::unique_ptr<KafkaFollower> follower_;  // Until replay() is done.
  const ShardLog log_;
  KafkaConnection& connection_;
  const KafkaJournalOptions options_;
  const std::uint64_t nonce_;  // Tells the entries of this journal from all others.
  journal::Epoch epoch_;
  std::shared_ptr<KafkaWriter> writer_;  // From replay() on.
};

}  // namespace stanchion::kafka

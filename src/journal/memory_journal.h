// A journal that keeps nothing, for --in-memory: every record is "durable" once it is flushed.
#pragma once

#include "journal/journal.h"

namespace stanchion::journal {

class MemoryJournal final : public Journal {
 public:
  Status replay(Position from, const RecordVisitor& visit) override;
  void start(JournalEvents events) override;
  Position append(std::string_view record) override;
  void flush() override;
  Position durable() const override { return durable_; }
  Position next_position() const override { return next_; }
  Room room() const override { return Room::kPlenty; }
  void trim_before(Position) override {}
  Status close() override;

 private:
  JournalEvents events_;
  Position next_{1};
  Position durable_;
};

}  // namespace stanchion::journal

// A journal on a log that several machines follow and one of them at a time owns; see shared_log.h
// for the rules.
//
//   follow ─▶ read … read ─▶ claim ─▶ read … ─▶ kOwned ─▶ start ─▶ append, flush … (a Journal)
//               └─▶ kTrimmed: a copy of another replica's store is needed
//
// A machine that owns the log no longer learns so by JournalEvents::superseded, and opens another
// journal to follow again. JournalEvents::failed is not called: what is wrong with one log must not end
// a process that has others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/time.h"
#include "journal/journal.h"
#include "journal/shared_log.h"

namespace stanchion::journal {

// The log does not take what its owner, or who claims it, has sent.
struct LogStall {
  Duration waiting{};  // For what was sent first.
  std::string why;     // For a person.

  friend bool operator==(const LogStall&, const LogStall&) = default;
};

class SharedJournal : public Journal {
 public:
  enum class Progress {
    kMore,     // There are further records at hand.
    kWaiting,  // Not at the moment: `arrived` will be called.
    kOwned,    // Every record before the own claim was read. start() may be called.
    kRefused,  // The claim came too late, or may be lost. Reading goes on.
    kTrimmed,  // The log does not have the next record any more.
    kTooNew,   // Only a later release can read what comes next.
  };

  // Reading begins at `from`; `before` is the digest of the records before it that the caller has,
  // if it knows. `arrived` is called when read() may have something to tell after it said kWaiting,
  // on any thread. REQUIRES: called once, before everything else.
  virtual void follow(Position from, std::optional<LogDigest> before,
                      std::function<void()> arrived) = 0;

  // Passes some of the records that have arrived to `visit`, in order, about `bytes` of them; each
  // of them is durable. Fails if the log is damaged, if the caller has other records than the log or
  // more (LG4), or as `visit` does. REQUIRES: start() was not called.
  virtual Result<Progress> read(std::size_t bytes, const RecordVisitor& visit) = 0;

  // Whether read() has failed because of LG4.
  virtual bool has_other_past() const = 0;

  // Whether everything was read that was in the log when following began. Before that a claim would
  // be of an epoch that may be long gone.
  virtual bool has_reached_end() const = 0;

  // Every entry before this one was read.
  virtual LogOffset next_offset() const = 0;

  // Asks to own the log: read() tells the outcome. May be called again when it was refused.
  virtual void claim() = 0;

  // Why nothing can be written to the log, if that is why it was lost: the log has refused for good
  // what was appended.
  virtual std::optional<Failure> refusal() const = 0;

  // Called about twice a second: a log that shows nothing although it goes on makes read() fail, or an
  // owner lose it.
  virtual void notice_silence() {}

  // While something that was sent is not known to be in the log for longer than that takes. Looked at
  // now and then.
  virtual std::optional<LogStall> stall() const = 0;

  // The format of what is written from now on, up to the newest that this machine reads: all others
  // read it. The first one until this is called.
  virtual void write_format(std::uint32_t format) = 0;

  // Records that are known to be in the log and were not read yet, roughly.
  virtual std::uint64_t lag() const = 0;

  // Nobody needs the records before `position` any more: the log may drop them. The caller makes
  // sure that all replicas have them in their stores.
  virtual void drop_before(Position position) = 0;

  // A checkpoint of this machine does not allow to drop anything: others may not have one.
  void trim_before(Position) override {}

  // Records are only read by read().
  Status replay(Position, const RecordVisitor&) override {
    return fail("a shared log is followed, not replayed");
  }

  bool can_be_superseded() const override { return true; }
};

}  // namespace stanchion::journal

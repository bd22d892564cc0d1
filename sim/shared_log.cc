#include "sim/shared_log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/violation.h"

namespace stanchion::sim {

using journal::LogEntryKind;
using journal::LogOffset;
using journal::LogReader;
using journal::Proof;

namespace {

// So many entries may be under way.
constexpr std::size_t kUnderWayMax = 64;
// Without an acknowledgement for this long, a barrier is sent to learn what has become of the rest.
constexpr Micros kSilence = 50 * kMillisecond;
// F5: a log is not claimed so many times in so short a time, whatever happens.
constexpr std::size_t kClaimsMax = 20;
constexpr Micros kClaimsTime = 5 * kSecond;

}  // namespace

LogOffset SharedLog::append(Entry entry, Micros now) {
  const LogReader::Verdict verdict = judge_.judge(entry.head);
  if (verdict == LogReader::Verdict::kRecords)
    for (const std::string& record : entry.records) {
      judge_.pass(record);
      history_.push_back(record);
    }
  if (verdict == LogReader::Verdict::kOtherPast)
    throw Violation("F6: an owner writes behind other records than those of its log");
  if (verdict == LogReader::Verdict::kClaim) {
    claims_.push_back(now);
    if (claims_.size() > kClaimsMax) claims_.pop_front();
    if (claims_.size() == kClaimsMax && now - claims_.front() < kClaimsTime)
      throw Violation("F5: nodes take a log from each other without end");
  }
  entries_.push_back(std::move(entry));
  for (const auto& [who, arrived] : watchers_) arrived();
  return LogOffset(end().value() - 1);
}

const SharedLog::Entry& SharedLog::at(LogOffset offset) const {
  CHECK(offset >= begin() && offset < end(), "the log has this entry");
  return entries_[static_cast<std::size_t>(offset.value() - trimmed_)];
}

void SharedLog::trim_before(LogOffset offset) {
  while (begin() < offset && entries_.size() > 1) {
    entries_.pop_front();
    ++trimmed_;
  }
}

void SharedLog::keep(std::size_t entries) {
  CHECK(entries > 0 && entries <= entries_.size(), "there is something to keep");
  entries_.resize(entries);
  const journal::LogEntry& first = entries_.front().head;
  judge_ = trimmed_ == 0 ? LogReader() : LogReader(first.first, first.epoch);
  for (const Entry& entry : entries_)
    if (judge_.judge(entry.head) == LogReader::Verdict::kRecords)
      for (const std::string& record : entry.records) judge_.pass(record);
  history_.resize(judge_.next().value() - 1);
  claims_.clear();
}

void SharedLog::lose_behind(Position last) {
  const auto lost = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.head.first.value() + entry.head.count > last.value() + 1;
  });
  keep(static_cast<std::size_t>(lost - entries_.begin()));
  for (const auto& [who, arrived] : watchers_) arrived();
}

void SharedLog::make_anew() {
  entries_.clear();
  trimmed_ = 0;
  judge_ = LogReader();
  history_.clear();
  claims_.clear();
}

SharedLogJournal::SharedLogJournal(World& world, Owner owner, SharedLog& log, const Uplink& uplink,
                                   const FleetRules& rules, std::uint32_t format)
    : world_(world),
      owner_(owner),
      log_(log),
      uplink_(uplink),
      rules_(rules),
      random_(world.random().fork()),
      writer_(random_.next() | 1),
      reads_(format) {}

SharedLogJournal::~SharedLogJournal() {
  *alive_ = false;
  log_.ignore(watch_);
}

// The time until something that is sent now arrives.
Micros SharedLogJournal::way() {
  return uplink_.departure(world_) - world_.now() + random_.between<Micros>(1, 2 * kMillisecond);
}

// F4, of a fleet (fleet.h).
bool SharedLogJournal::is_readable(const SharedLog::Entry& entry) const {
  if (entry.format <= reads_) return true;
  if (!rules_.meets_newer) throw Violation("F4: an entry was written that not all nodes can read");
  return false;
}

void SharedLogJournal::follow(Position from, std::optional<journal::LogDigest> before,
                              std::function<void()> arrived) {
  wanted_ = next_ = from;
  digest_ = before;
  durable_ = Position(from.value() - 1);
  cursor_ = log_.begin();
  arrived_ = std::move(arrived);
  watch_ = log_.watch([this] {
    world_.schedule(way(), owner_, [this, alive = alive_] {
      if (*alive && all_read_) arrived_();
    });
  });
}

// A trimmed log begins with an entry that is valid; everything is relative to it.
Result<SharedLogJournal::Progress> SharedLogJournal::read(std::size_t bytes,
                                                          const journal::RecordVisitor& visit) {
  const auto progress = read_some(bytes, visit);
  all_read_ = progress && *progress == Progress::kWaiting;
  return progress;
}

Result<SharedLogJournal::Progress> SharedLogJournal::read_some(
    std::size_t bytes, const journal::RecordVisitor& visit) {
  if (world_.now() < uplink_.cut_until) {
    world_.schedule(way(), owner_, [this, alive = alive_] {
      if (*alive) arrived_();
    });
    return Progress::kWaiting;
  }
  if (log_.begin() == log_.end()) {
    RETURN_IF_FAILED(check_end());
    reached_end_ = true;
    return Progress::kWaiting;
  }
  // What it has not read is claims and barriers, or records that all replicas have.
  if (cursor_ < log_.begin()) begin_at(log_.begin());
  // The log has lost its end. From the beginning on, the positions tell.
  if (cursor_ > log_.end()) {
    reached_end_ = false;
    reader_ = LogReader();
    places_.clear();
    begin_at(log_.begin());
  }
  if (!std::exchange(positioned_, true)) {
    if (!is_readable(log_.at(cursor_))) return Progress::kTooNew;
    const journal::LogEntry& first = log_.at(cursor_).head;
    if (cursor_ > LogOffset()) reader_ = LogReader(first.first, first.epoch);
    if (reader_.next() > wanted_) return Progress::kTrimmed;
    // The own claim, if it was dropped, was not the last: its owner has written since.
    if (claimed_ != journal::Epoch() && first.epoch >= claimed_) return Progress::kRefused;
  }
  for (std::size_t read = 0; cursor_ < log_.end();) {
    if (read >= bytes) return Progress::kMore;
    if (log_.is_damaged(cursor_, world_.now())) return fail("an entry is damaged");
    const LogOffset at = std::exchange(cursor_, cursor_.next());
    const auto progress = judge(log_.at(at), at, visit, read);
    if (!progress || *progress != Progress::kMore) return progress;
  }
  RETURN_IF_FAILED(check_end());
  reached_end_ = true;
  return Progress::kWaiting;
}

void SharedLogJournal::begin_at(LogOffset first) {
  cursor_ = first;
  positioned_ = false;
}

Result<SharedLogJournal::Progress> SharedLogJournal::judge(const SharedLog::Entry& entry,
                                                           LogOffset at,
                                                           const journal::RecordVisitor& visit,
                                                           std::size_t& bytes) {
  if (!is_readable(entry)) return Progress::kTooNew;
  const LogReader::Verdict verdict = reader_.judge(entry.head);
  if (verdict == LogReader::Verdict::kDamaged) return fail("the log has a hole");
  if (verdict == LogReader::Verdict::kOtherPast) return fail("the log has another past");
  // Broken on purpose: what should be left out is taken.
  const bool anyway = (verdict == LogReader::Verdict::kVoid && !rules_.skips_void) ||
                      (verdict == LogReader::Verdict::kDuplicate && !rules_.skips_doubled);
  if (verdict == LogReader::Verdict::kRecords || anyway) {
    if (!anyway) places_.emplace_back(entry.head.first, at);
    Position position = entry.head.first;
    for (const std::string& record : entry.records) {
      RETURN_IF_FAILED(take(std::exchange(position, position.next()), record, anyway, visit));
      bytes += record.size();
    }
  }
  const bool own = entry.head.kind == LogEntryKind::kClaim && entry.head.writer == writer_ &&
                   entry.head.epoch == claimed_;
  if (!own) return Progress::kMore;
  if (verdict != LogReader::Verdict::kClaim && rules_.one_at_a_time) return Progress::kRefused;
  RETURN_IF_FAILED(check_end());
  log_writer_.emplace(claimed_, at);
  return Progress::kOwned;
}

Status SharedLogJournal::take(Position position, const std::string& record, bool anyway,
                              const journal::RecordVisitor& visit) {
  const auto before = reader_.digest();
  if (!anyway) reader_.pass(record);
  if (position < wanted_ && !anyway) return {};
  if (rules_.checks_past && digest_ && digest_ != before)
    return refuse("the store has another past");
  if (before && rules_.checks_past) {
    digest_ = reader_.digest();
  } else if (digest_) {
    digest_ = journal::extended(*digest_, record);
  }
  durable_ = std::exchange(next_, next_.next());
  wanted_ = next_;
  return visit(durable_, record);
}

// LG4, at the end of the log and at the own claim.
Status SharedLogJournal::check_end() {
  if (!rules_.checks_past) return {};
  if (reader_.next() < wanted_) return refuse("the store is ahead of its log");
  if (reader_.next() == wanted_ && digest_ && digest_ != reader_.digest())
    return refuse("the store has another past");
  if (reader_.next() == wanted_ && !digest_) digest_ = reader_.digest();
  return {};
}

Status SharedLogJournal::refuse(const char* why) {
  other_past_ = true;
  return fail(why);
}

void SharedLogJournal::claim() {
  claimed_ = reader_.epoch().next();
  SharedLog::Entry entry{{.kind = LogEntryKind::kClaim,
                          .epoch = claimed_,
                          .writer = writer_,
                          .first = next_,
                          .before = digest_},
                         {}};
  // Broken on purpose: it does not wait until it has read what stands before the claim.
  if (!rules_.reads_to_claim) {
    const LogOffset at = log_.append(std::move(entry), world_.now());
    cursor_ = at;
    return;
  }
  send(std::move(entry), nullptr);
}

// On their way entries are not overtaken by later ones of the same writer. An acknowledgement may
// be lost, and an entry may arrive twice.
void SharedLogJournal::send(SharedLog::Entry entry, std::function<void(LogOffset)> acknowledged) {
  // What stands before it is of that format already.
  entry.format = entry.head.before ? std::max(writes_, 2u) : writes_;
  arrives_at_ = std::max(arrives_at_ + 1, world_.now() + way());
  const bool is_lost = random_.chance(3);
  const bool is_doubled = entry.head.kind == LogEntryKind::kRecords && random_.chance(2);
  world_.schedule(arrives_at_ - world_.now(), kWorldOwner,
                  [&world = world_, &log = log_, owner = owner_, entry = std::move(entry), is_lost,
                   is_doubled, acknowledged = std::move(acknowledged), alive = alive_,
                   back = random_.between<Micros>(1, 2 * kMillisecond), &uplink = uplink_] {
                    const LogOffset at = log.append(entry, world.now());
                    if (is_doubled) log.append(entry, world.now());
                    if (is_lost || !acknowledged) return;
                    world.schedule(uplink.departure(world) - world.now() + back, owner,
                                   [acknowledged, at, alive] {
                                     if (*alive) acknowledged(at);
                                   });
                  });
}

Position SharedLogJournal::append(std::string_view record) {
  if (pending_.empty()) pending_before_ = digest_;
  if (digest_) digest_ = journal::extended(*digest_, record);
  pending_.emplace_back(record);
  return std::exchange(next_, next_.next());
}

journal::Room SharedLogJournal::room() const {
  if (superseded_) return journal::Room::kNone;
  return unknown_.size() > kUnderWayMax ? journal::Room::kBusy : journal::Room::kPlenty;
}

void SharedLogJournal::flush() {
  if (superseded_) return;
  const std::uint64_t count = pending_.size();
  if (count > 0 && writes_ > 1 && !pending_before_) {
    // The chain begins here.
    digest_ = pending_before_ = journal::LogDigest();
    for (const std::string& record : pending_) digest_ = journal::extended(*digest_, record);
  }
  SharedLog::Entry entry{{.kind = count > 0 ? LogEntryKind::kRecords : LogEntryKind::kBarrier,
                          .epoch = claimed_,
                          .writer = writer_,
                          .first = Position(next_.value() - count),
                          .count = count,
                          .before = count > 0 ? pending_before_ : std::nullopt},
                         std::exchange(pending_, {})};
  unknown_.push_back({++sent_, Position(next_.value() - 1)});
  send(std::move(entry), [this, number = sent_](LogOffset at) { acknowledged(at, number); });
  look_for_silence();
}

void SharedLogJournal::look_for_silence() {
  if (std::exchange(listening_, true)) return;
  world_.schedule(kSilence, owner_, [this, alive = alive_, before = proven_] {
    if (!*alive) return;
    listening_ = false;
    if (superseded_ || unknown_.empty()) return;
    if (proven_ == before) flush();
    look_for_silence();
  });
}

// An entry of one's own that is known to be in the log, directly or because a later one is.
void SharedLogJournal::take_own(const SharedLog::Entry& entry, LogOffset at) {
  if (entry.head.kind == LogEntryKind::kRecords &&
      (places_.empty() || places_.back().first < entry.head.first))
    places_.emplace_back(entry.head.first, at);
  // Entries arrive in order, so this one is the first that is unknown, unless it came twice.
  if (unknown_.empty()) return;
  const Sent& sent = unknown_.front();
  const bool is_it = entry.head.kind == LogEntryKind::kRecords
                         ? entry.head.first.value() + entry.head.count - 1 == sent.last.value() &&
                               sent.last > durable_
                         : sent.last.value() + 1 == entry.head.first.value();
  if (!is_it) return;
  proven_ = Proof(sent.number);
  durable_ = std::max(durable_, sent.last);
  unknown_.pop_front();
}

// LG2: everything up to one's own entry is looked at. False: somebody else owns the log.
bool SharedLogJournal::take_up_to(LogOffset own) {
  while (log_writer_->gap() <= own) {
    const LogOffset at = log_writer_->gap();
    if (at < log_.begin()) return false;  // Only an owner drops entries, and this one did not.
    const SharedLog::Entry& entry = log_.at(at);
    if (entry.head.writer != writer_ && log_.is_damaged(at, world_.now())) return false;
    if (!is_readable(entry) || !log_writer_->look_at(entry.head)) return false;
    if (entry.head.writer == writer_ && entry.head.epoch == claimed_) take_own(entry, at);
  }
  return true;
}

// An entry of one's own stands where everything was known before it was written.
bool SharedLogJournal::has_lost_entries(LogOffset own, std::uint64_t number) const {
  return own < log_writer_->gap() && !unknown_.empty() && number >= unknown_.front().number;
}

void SharedLogJournal::acknowledged(LogOffset at, std::uint64_t number) {
  if (superseded_) return;
  if (!rules_.continuity) {
    if (at >= log_.begin()) take_own(log_.at(at), at);
  } else if (has_lost_entries(at, number) || !take_up_to(at)) {
    superseded_ = true;
    return events_.superseded();
  }
  events_.proven();
  events_.durable(durable_);
  events_.roomier();
}

void SharedLogJournal::drop_before(Position position) {
  std::optional<LogOffset> from;
  while (places_.size() > 1 && places_[1].first <= position) {
    places_.pop_front();
    from = places_.front().second;
  }
  if (!from) return;
  world_.schedule(way(), kWorldOwner, [&log = log_, at = *from] { log.trim_before(at); });
}

}  // namespace stanchion::sim

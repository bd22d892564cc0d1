#include "sim/shared_log.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "fleet/limits.h"
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
// A client is replaced this often at most.
constexpr Micros kAnewInterval = 3 * kSecond;

}  // namespace

LogOffset SharedLog::append(Entry entry, Micros now, Micros readable_in) {
  const LogReader::Verdict verdict =
      entry.is_an_entry() ? judge_.judge(entry.head) : LogReader::Verdict::kVoid;
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
  entry.readable_at = now + readable_in;
  if (!disk_.entries.empty())
    entry.readable_at = std::max(entry.readable_at, disk_.entries.back().readable_at);
  entry.last = Position(judge_.next().value() - 1);
  disk_.entries.push_back(std::move(entry));
  for (const auto& [who, arrived] : watchers_) arrived();
  return LogOffset(end().value() - 1);
}

LogOffset SharedLog::readable_end(Micros now) const {
  LogOffset readable = end();
  // What a log was trimmed up to can be read.
  const LogOffset least = disk_.trimmed == 0 ? begin() : begin().next();
  while (readable > least && at(LogOffset(readable.value() - 1)).readable_at > now)
    readable = LogOffset(readable.value() - 1);
  return readable;
}

const SharedLog::Entry& SharedLog::at(LogOffset offset) const {
  CHECK(offset >= begin() && offset < end(), "the log has this entry");
  return disk_.entries[static_cast<std::size_t>(offset.value() - disk_.trimmed)];
}

void SharedLog::trim_before(LogOffset offset) {
  while (begin() < offset && disk_.entries.size() > 1) {
    disk_.entries.pop_front();
    ++disk_.trimmed;
  }
}

void SharedLog::keep(std::size_t entries) {
  CHECK(entries > 0 && entries <= disk_.entries.size(), "there is something to keep");
  disk_.entries.resize(entries);
  const journal::LogEntry& first = disk_.entries.front().head;
  judge_ = disk_.trimmed == 0 ? LogReader() : LogReader(first.first, first.epoch);
  for (const Entry& entry : disk_.entries)
    if (entry.is_an_entry() && judge_.judge(entry.head) == LogReader::Verdict::kRecords)
      for (const std::string& record : entry.records) judge_.pass(record);
  history_.resize(judge_.next().value() - 1);
  claims_.clear();
}

void SharedLog::lose_behind(Position last) {
  const auto lost = std::ranges::find_if(disk_.entries, [&](const Entry& entry) {
    return entry.head.first.value() + entry.head.count > last.value() + 1;
  });
  keep(std::max<std::size_t>(1, static_cast<std::size_t>(lost - disk_.entries.begin())));
  for (const auto& [who, arrived] : watchers_) arrived();
}

void SharedLog::make_anew() {
  ++failures_;
  disk_.entries.clear();
  disk_.trimmed = 0;
  judge_ = LogReader();
  history_.clear();
  claims_.clear();
}

void SharedLog::restore(Disk older) {
  if (older.entries.empty()) return make_anew();
  ++failures_;
  disk_ = std::move(older);
  keep(disk_.entries.size());
}

SharedLogJournal::SharedLogJournal(World& world, Owner owner, SharedLog& log, Uplink& uplink,
                                   const FleetRules& rules, Site site)
    : world_(world),
      owner_(owner),
      log_(log),
      uplink_(uplink),
      rules_(rules),
      random_(world.random().fork()),
      writer_(random_.next() | 1),
      site_(std::move(site)),
      troubled_(site_.seed),
      one_under_way_(site_.trouble != nullptr && site_.trouble->one_under_way &&
                     rules.one_under_way),
      reads_(site_.format) {}

SharedLogJournal::~SharedLogJournal() {
  *alive_ = false;
  log_.ignore(watch_);
}

// The time until something that is sent now arrives.
Micros SharedLogJournal::way() {
  return uplink_.departure(world_) - world_.now() + random_.between<Micros>(1, 2 * kMillisecond);
}

bool SharedLogJournal::per_mille(unsigned LogTrouble::*what) {
  return site_.trouble != nullptr && site_.trouble->*what > 0 &&
         troubled_.below(1000) < site_.trouble->*what;
}

// Where the log ends for a reader here.
LogOffset SharedLogJournal::end() const {
  const LogOffset end = log_.readable_end(world_.now());
  if (world_.now() >= uplink_.stale_until) return end;
  // A broker that lacks the end has what stands before it.
  return std::min(end, std::max(log_.begin().next(), uplink_.stale_end));
}

// As Kafka's client, which asks again and again.
void SharedLogJournal::look_again_when_there_is_more() {
  if (end() >= log_.end() || std::exchange(looking_again_, true)) return;
  const Micros now = world_.now();
  const Micros when = std::max({now, uplink_.stale_until, log_.at(end()).readable_at});
  world_.schedule(when - now + way(), owner_, [this, alive = alive_] {
    if (!*alive) return;
    looking_again_ = false;
    if (all_read_) arrived_();
  });
}

// KF2 of kafka/log_judge.h.
bool SharedLogJournal::can_be_skipped(const SharedLog::Entry& entry, LogOffset at) const {
  if (entry.litter == SharedLog::Litter::kStrange) return rules_.skips_foreign;
  return rules_.heeds_skips && site_.is_skipped && site_.is_skipped(at);
}

// F4, of a fleet (fleet.h).
bool SharedLogJournal::is_readable(const SharedLog::Entry& entry) const {
  if (entry.format <= reads_ || passes_over(entry)) return true;
  if (entry.litter == SharedLog::Litter::kLater) return false;
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

Result<SharedLogJournal::Progress> SharedLogJournal::read(std::size_t bytes,
                                                          const journal::RecordVisitor& visit) {
  if (has_failed_) return fail(kFatal);
  if (std::exchange(claim_is_lost_, false)) {
    claim_sent_.reset();
    claimed_ = journal::Epoch();  // Should it come, it is nobody's.
    return Progress::kRefused;
  }
  const auto progress = read_some(bytes, visit);
  if (progress && (*progress == Progress::kOwned || *progress == Progress::kRefused))
    claim_sent_.reset();
  all_read_ = progress && *progress == Progress::kWaiting;
  if (all_read_) look_again_when_there_is_more();
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
  const LogOffset end = this->end();
  // The log has lost its end, or a broker has not got it yet. From the beginning on, the positions
  // tell.
  if (cursor_ > end) {
    reached_end_ = false;
    reader_ = LogReader();
    places_.clear();
    begin_at(log_.begin());
  }
  if (log_.begin() == end) {
    RETURN_IF_FAILED(check_end());
    reached_end_ = true;
    return Progress::kWaiting;
  }
  // What it has not read is claims and barriers, or records that all replicas have.
  if (cursor_ < log_.begin()) begin_at(log_.begin());
  // A trimmed log begins with an entry that is valid; everything is relative to it.
  if (!std::exchange(positioned_, true)) {
    if (!is_readable(log_.at(cursor_))) return Progress::kTooNew;
    const journal::LogEntry& first = log_.at(cursor_).head;
    if (cursor_ > LogOffset()) reader_ = LogReader(first.first, first.epoch);
    if (reader_.next() > wanted_) return Progress::kTrimmed;
    // The own claim, if it was dropped, was not the last: its owner has written since.
    if (claimed_ != journal::Epoch() && first.epoch >= claimed_) return Progress::kRefused;
  }
  for (std::size_t read = 0; cursor_ < end;) {
    if (read >= bytes) return Progress::kMore;
    const SharedLog::Entry& entry = log_.at(cursor_);
    const bool is_litter = !entry.is_an_entry();
    if (log_.is_damaged(cursor_, world_.now()) || (is_litter && !can_be_skipped(entry, cursor_)))
      return fail("an entry is damaged");
    const LogOffset at = std::exchange(cursor_, cursor_.next());
    if (is_litter) continue;
    const auto progress = judge(entry, at, visit, read);
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
  if (passes_over(entry)) return Progress::kMore;
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
  const bool is_in_a_store_without_digest = position.next() == wanted_ && !digest_;
  if (rules_.checks_past && !anyway && before && is_in_a_store_without_digest)
    return refuse("the store has another past");
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

std::optional<journal::LogStall> SharedLogJournal::stall() const {
  const std::optional<Micros> sent =
      unknown_.empty() ? claim_sent_ : std::optional(unknown_.front().at);
  if (!sent || superseded_) return std::nullopt;
  const Duration waiting((world_.now() - *sent) / kMillisecond);
  if (waiting < fleet::kStalledAfter) return std::nullopt;
  return journal::LogStall{waiting, "the log takes nothing"};
}

void SharedLogJournal::claim() {
  claim_sent_ = world_.now();
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
  send(std::move(entry), 0);
}

// What becomes of the entry, if something does that the log itself knows nothing of.
bool SharedLogJournal::has_trouble(const SharedLog::Entry& entry) {
  // Broken on purpose: brokers refuse what was written by a clock that is ahead of theirs.
  const bool is_from_the_future =
      !rules_.log_stamps && site_.trouble != nullptr && site_.trouble->clock_is_behind;
  if (is_from_the_future || per_mille(&LogTrouble::fatal)) {
    const bool is_claim = entry.head.kind == LogEntryKind::kClaim;
    world_.schedule(way(), owner_, [this, is_claim, alive = alive_] {
      if (!*alive || superseded_) return;
      has_failed_ = true;
      is_claim ? arrived_() : give_way();
    });
    return true;
  }
  if (world_.now() - uplink_.begun_anew < kAnewInterval || !per_mille(&LogTrouble::anew))
    return false;
  uplink_.begun_anew = world_.now();
  send_by_a_client_that_is_replaced(entry);
  return true;
}

void SharedLogJournal::send_by_a_client_that_is_replaced(SharedLog::Entry entry) {
  const Micros told = troubled_.between<Micros>(1, 2000) * kMillisecond;
  const bool is_claim = entry.head.kind == LogEntryKind::kClaim;
  const std::uint64_t when = troubled_.below(3);
  const Micros arrives =
      when == 0 ? told / 2 : told + troubled_.between<Micros>(1, 6000) * kMillisecond;
  if (when < 2)
    world_.schedule(
        arrives, kWorldOwner,
        [&world = world_, &log = log_, entry = std::move(entry), failures = log_.failures()] {
          if (log.failures() == failures) log.append(entry, world.now());
        });
  world_.schedule(told, owner_, [this, is_claim, alive = alive_, claimed = claimed_] {
    if (!*alive) return;
    if (!is_claim) return give_way();
    // It may have been read meanwhile.
    if (log_writer_ || claimed != claimed_ || !rules_.gives_up_claims) return;
    claim_is_lost_ = true;
    writer_ = troubled_.next() | 1;
    arrived_();
  });
}

// After being appended.
Micros SharedLogJournal::readable_in() {
  if (site_.trouble == nullptr || site_.trouble->late == 0) return 0;
  if (!troubled_.chance(site_.trouble->late)) return 0;
  return troubled_.between<Micros>(1, 800) * kMillisecond;
}

// On their way entries are not overtaken by later ones of the same writer. An acknowledgement may
// be lost, and an entry may arrive twice. `number` is 0 for a claim.
void SharedLogJournal::send(SharedLog::Entry entry, std::uint64_t number) {
  // What stands before it is of that format already; records without a digest are of the first.
  const bool is_of_the_first = entry.head.kind == LogEntryKind::kRecords && !entry.head.before;
  entry.format = is_of_the_first ? 1 : entry.head.before ? std::max(writes_, 2u) : writes_;
  if (has_trouble(entry)) return;
  arrives_at_ = std::max(arrives_at_ + 1, world_.now() + way());
  const bool is_lost = random_.chance(3);
  const bool is_doubled = entry.head.kind == LogEntryKind::kRecords && random_.chance(2);
  const Micros readable_in = this->readable_in();
  // Brokers acknowledge what can be read, unless another one leads soon after.
  const bool waits = readable_in > 0 && troubled_.chance(70);
  world_.schedule(
      arrives_at_ - world_.now(), kWorldOwner,
      [this, &world = world_, &log = log_, owner = owner_, entry = std::move(entry), is_lost,
       is_doubled, number, alive = alive_, back = random_.between<Micros>(1, 2 * kMillisecond),
       &uplink = uplink_, readable_in, waits, has_no_offset = is_lost && one_under_way_,
       failures = log_.failures()] {
        if (failures != log.failures()) return;
        const LogOffset at = log.append(entry, world.now(), readable_in);
        if (is_doubled) log.append(entry, world.now());
        if (number == 0 || (is_lost && !has_no_offset)) return;
        const Micros wait = waits ? log.at(at).readable_at - world.now() : 0;
        world.schedule(uplink.departure(world) - world.now() + back + wait, owner,
                       [this, at, number, alive, has_no_offset] {
                         if (!*alive) return;
                         has_no_offset ? acknowledged_without_offset() : acknowledged(at, number);
                       });
      });
}

Position SharedLogJournal::append(std::string_view record) {
  if (pending_.empty()) {
    if (writes_ > 1 && !digest_) digest_ = journal::LogDigest();  // The chain begins here.
    pending_before_ = digest_;
  }
  if (digest_) digest_ = journal::extended(*digest_, record);
  pending_.emplace_back(record);
  return std::exchange(next_, next_.next());
}

journal::Room SharedLogJournal::room() const {
  if (superseded_) return journal::Room::kNone;
  const std::size_t unknown = unknown_.size() + (one_under_way_ ? pending_.size() : 0);
  return unknown > kUnderWayMax ? journal::Room::kBusy : journal::Room::kPlenty;
}

void SharedLogJournal::flush() {
  if (superseded_) return;
  if (!one_under_way_) {
    send_next(false);
    return look_for_silence();
  }
  due_ = true;
  send_what_is_due();
}

void SharedLogJournal::send_what_is_due() {
  if (!due_ || superseded_ || !unknown_.empty()) return;
  if (pending_.empty() && !barrier_wanted_) {
    due_ = false;
    return;
  }
  send_next(false);
}

void SharedLogJournal::send_next(bool only_barrier) {
  const std::uint64_t count = only_barrier ? 0 : pending_.size();
  const Position first(next_.value() - pending_.size());
  SharedLog::Entry entry{{.kind = count > 0 ? LogEntryKind::kRecords : LogEntryKind::kBarrier,
                          .epoch = claimed_,
                          .writer = writer_,
                          .first = first,
                          .count = count,
                          .before = count > 0 ? pending_before_ : std::nullopt},
                         count > 0 ? std::exchange(pending_, {}) : std::vector<std::string>()};
  barrier_wanted_ = false;
  unknown_.push_back({++sent_, Position(first.value() + count - 1), world_.now()});
  send(std::move(entry), sent_);
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
    if (at >= log_.end()) return false;   // The log has lost it.
    const SharedLog::Entry& entry = log_.at(at);
    if (entry.head.writer != writer_ && log_.is_damaged(at, world_.now())) return false;
    if (!entry.is_an_entry() && !can_be_skipped(entry, at)) return false;
    const journal::LogEntry head = passes_over(entry) ? journal::LogEntry() : entry.head;
    if (!is_readable(entry) || !log_writer_->look_at(head)) return false;
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
  } else if (at > log_writer_->gap() && at > log_.begin() && at < log_.end() &&
             log_.at(LogOffset(at.value() - 1)).readable_at > world_.now()) {
    // What stands before it is looked at as soon as it can be read.
    const Micros wait = log_.at(LogOffset(at.value() - 1)).readable_at - world_.now();
    return world_.schedule(wait, owner_, [this, at, number, alive = alive_] {
      if (*alive) acknowledged(at, number);
    });
  } else if (has_lost_entries(at, number) || !take_up_to(at)) {
    return give_way();
  }
  send_what_is_due();
  events_.proven();
  events_.durable(durable_);
  events_.roomier();
}

// It was sent twice, and where it is the brokers do not say. A later one tells.
void SharedLogJournal::acknowledged_without_offset() {
  if (superseded_) return;
  if (rules_.sees_unplaced) return send_next(true);
  // Broken on purpose: it may stand behind somebody else's claim.
  proven_ = Proof(unknown_.front().number);
  durable_ = std::max(durable_, unknown_.front().last);
  unknown_.pop_front();
  send_what_is_due();
  events_.proven();
  events_.durable(durable_);
  events_.roomier();
}

void SharedLogJournal::give_way() {
  if (std::exchange(superseded_, true)) return;
  events_.superseded();
}

void SharedLogJournal::drop_before(Position position) {
  std::optional<LogOffset> from;
  while (places_.size() > 1 && places_[1].first <= position) {
    places_.pop_front();
    from = places_.front().second;
  }
  if (!from) return;
  world_.schedule(way(), kWorldOwner, [&log = log_, at = *from, failures = log_.failures()] {
    if (failures == log.failures()) log.trim_before(at);
  });
}

}  // namespace stanchion::sim

#include "fleet/control_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/digest.h"
#include "model/limits.h"

namespace stanchion::fleet {
namespace {

constexpr std::uint32_t kMagic = 0x434E5453;  // "STNC"
constexpr std::uint8_t kFormat = 1;
constexpr std::size_t kHeadSize = 6;
constexpr std::size_t kChecksumSize = 8;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

enum class Kind : std::uint8_t {
  kBeat = 1,
  kCoordinatorClaim = 2,
  kAssignment = 3,
  kRelease = 4,
  kFleetMetadata = 5,
  kDrain = 6,
  kMove = 7,
  kForget = 8,
  kSkip = 9,
};

constexpr std::uint8_t kBeatDraining = 1;
constexpr std::uint8_t kBeatReady = 2;
// Of the byte before its links.
constexpr std::uint8_t kBeatTellsLinks = 1;

class Encoder {
 public:
  explicit Encoder(std::string& bytes) : out_(bytes) {}

  void operator()(const Beat& beat) {
    begin(Kind::kBeat);
    out_.text(beat.node);
    out_.u64(beat.process);
    out_.text(beat.zone);
    out_.text(beat.address);
    out_.text(beat.version);
    out_.i64(to_millis(beat.clock));
    out_.varint(beat.format);
    out_.u8(static_cast<std::uint8_t>((beat.draining ? kBeatDraining : 0) |
                                      (beat.ready ? kBeatReady : 0)));
    out_.varint(beat.reached.size());
    for (const auto& [shard, reached] : beat.reached) {
      out_.varint(shard.value());
      out_.varint(reached.applied.value());
      out_.varint(reached.saved.value());
      out_.u64(reached.service);
    }
    out_.varint(beat.count);
    out_.varint(beat.given_up.size());
    for (const auto& [shard, why] : beat.given_up) {
      out_.varint(shard.value());
      out_.text(why);
    }
    write_links(beat);
    out_.varint(beat.other_past.size());
    for (const ShardIndex shard : beat.other_past) out_.varint(shard.value());
    out_.varint(beat.stalled.size());
    for (const auto& [shard, stall] : beat.stalled) {
      out_.varint(shard.value());
      out_.i64(to_millis(stall.since));
      out_.text(stall.why);
    }
  }
  void operator()(const CoordinatorClaim& claim) {
    begin(Kind::kCoordinatorClaim);
    out_.varint(claim.term.value());
    out_.text(claim.node);
    out_.u64(claim.attempt);
  }
  void operator()(const Assignment& assignment) {
    begin(Kind::kAssignment);
    out_.varint(assignment.term.value());
    out_.varint(assignment.shard.value());
    out_.varint(assignment.number.value());
    out_.text(assignment.owner);
    out_.varint(assignment.standbys.size());
    for (const NodeName& standby : assignment.standbys) out_.text(standby);
    out_.text(assignment.previous);
    out_.u64(assignment.applied_move);
  }
  void operator()(const Release& release) {
    begin(Kind::kRelease);
    out_.text(release.node);
    out_.varint(release.shard.value());
    out_.varint(release.number.value());
  }
  void operator()(const FleetMetadata& metadata) {
    begin(Kind::kFleetMetadata);
    out_.u64(metadata.id);
    out_.text(metadata.name);
    out_.varint(metadata.shards);
    out_.varint(metadata.format);
    out_.i64(to_millis(metadata.created));
  }
  void operator()(const Drain& drain) {
    begin(Kind::kDrain);
    out_.text(drain.node);
    out_.u8(drain.on ? 1 : 0);
  }
  void operator()(const Move& move) {
    begin(Kind::kMove);
    out_.u64(move.id);
    out_.varint(move.shard.value());
    out_.text(move.to);
    out_.text(move.by);
  }
  void operator()(const Forget& forget) {
    begin(Kind::kForget);
    out_.text(forget.node);
  }
  void operator()(const Skip& skip) {
    begin(Kind::kSkip);
    out_.varint(skip.shard.value());
    out_.varint(skip.offset);
    out_.text(skip.by);
  }

 private:
  void write_links(const Beat& beat) {
    out_.u8(beat.linked ? kBeatTellsLinks : 0);
    if (!beat.linked) return;
    out_.varint(beat.linked->size());
    for (const NodeName& other : *beat.linked) out_.text(other);
    out_.varint(beat.unlinked.size());
    for (const auto& [other, why] : beat.unlinked) {
      out_.text(other);
      out_.text(why);
    }
  }
  void begin(Kind kind) {
    out_.u32(kMagic);
    out_.u8(kFormat);
    out_.u8(static_cast<std::uint8_t>(kind));
  }

  ByteWriter out_;
};

// Every value is checked as it is read; after the first that is wrong, ok() stays false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : in_(bytes) {}

  bool ok() const { return ok_ && in_.ok(); }

  Beat beat() {
    Beat beat;
    beat.node = name();
    beat.process = in_.u64();
    beat.zone = name();
    beat.address = text();
    beat.version = text();
    beat.clock = instant();
    beat.format = u32();
    const std::uint8_t flags = in_.u8();
    beat.draining = (flags & kBeatDraining) != 0;
    beat.ready = (flags & kBeatReady) != 0;
    const std::size_t count = in_.count();
    require(count <= limits::kShardsMax);
    for (std::size_t i = 0; ok() && i < count; ++i) {
      const ShardIndex index = shard();
      // In order, so that none is there twice.
      require(beat.reached.empty() || beat.reached.rbegin()->first < index);
      Beat::Reached& reached = beat.reached[index];
      reached.applied = Position(in_.varint());
      reached.saved = Position(in_.varint());
      reached.service = in_.u64();
    }
    if (in_.at_end()) return beat;  // An earlier release ends here.
    beat.count = in_.varint();
    read_given_up(beat);
    if (in_.at_end()) return beat;  // As above.
    read_links(beat);
    if (in_.at_end()) return beat;  // As above.
    read_other_past(beat);
    if (!in_.at_end()) read_stalled(beat);  // As above.
    return beat;
  }
  void read_given_up(Beat& beat) {
    const std::size_t count = in_.count();
    require(count <= limits::kShardsMax);
    for (std::size_t i = 0; ok() && i < count; ++i) {
      const ShardIndex index = shard();
      require(beat.given_up.empty() || beat.given_up.rbegin()->first < index);
      std::string why = text();
      require(why.size() <= kControlReasonSizeMax);
      beat.given_up[index] = std::move(why);
    }
  }
  void read_links(Beat& beat) {
    if ((in_.u8() & kBeatTellsLinks) == 0) return;
    beat.linked.emplace();
    const std::size_t linked = in_.count();
    require(linked <= kControlLinksMax);
    for (std::size_t i = 0; ok() && i < linked; ++i) require(beat.linked->insert(name()).second);
    const std::size_t unlinked = in_.count();
    require(unlinked <= kControlLinkReasonsMax);
    for (std::size_t i = 0; ok() && i < unlinked; ++i) {
      NodeName other = name();
      std::string why = text();
      require(why.size() <= kControlReasonSizeMax);
      require(beat.unlinked.emplace(std::move(other), std::move(why)).second);
    }
  }
  void read_other_past(Beat& beat) {
    const std::size_t count = in_.count();
    require(count <= limits::kShardsMax);
    for (std::size_t i = 0; ok() && i < count; ++i) require(beat.other_past.insert(shard()).second);
  }
  void read_stalled(Beat& beat) {
    const std::size_t count = in_.count();
    require(count <= limits::kShardsMax);
    for (std::size_t i = 0; ok() && i < count; ++i) {
      const ShardIndex index = shard();
      const Instant since = instant();
      std::string why = text();
      require(why.size() <= kControlReasonSizeMax);
      require(beat.stalled.emplace(index, Beat::Stall{since, std::move(why)}).second);
    }
  }
  CoordinatorClaim claim() {
    CoordinatorClaim claim;
    claim.term = Term(in_.varint());
    claim.node = name();
    claim.attempt = in_.u64();
    return claim;
  }
  Assignment assignment() {
    Assignment assignment;
    assignment.term = Term(in_.varint());
    assignment.shard = shard();
    assignment.number = AssignmentNo(in_.varint());
    assignment.owner = name();
    const std::size_t count = in_.count();
    require(count < kControlReplicasMax);
    for (std::size_t i = 0; ok() && i < count; ++i) assignment.standbys.push_back(name());
    assignment.previous = name_or_none();
    assignment.applied_move = in_.u64();
    return assignment;
  }
  Release release() {
    Release release;
    release.node = name();
    release.shard = shard();
    release.number = AssignmentNo(in_.varint());
    return release;
  }
  FleetMetadata metadata() {
    FleetMetadata metadata;
    metadata.id = in_.u64();
    metadata.name = name();
    metadata.shards = u32();
    require(metadata.shards >= 1 && metadata.shards <= limits::kShardsMax);
    metadata.format = u32();
    metadata.created = instant();
    return metadata;
  }
  Drain drain() {
    Drain drain;
    drain.node = name();
    const std::uint8_t on = in_.u8();
    require(on <= 1);
    drain.on = on == 1;
    return drain;
  }
  Move move() {
    Move move;
    move.id = in_.u64();
    require(move.id != 0);
    move.shard = shard();
    move.to = name();
    move.by = text();
    return move;
  }
  Forget forget() { return {name()}; }
  Skip skip() {
    Skip skip;
    skip.shard = shard();
    skip.offset = in_.varint();
    skip.by = text();
    return skip;
  }

 private:
  void require(bool condition) { ok_ = ok_ && condition; }

  std::string name() {
    const std::string_view text = in_.text();
    require(is_fleet_name(text));
    return ok() ? std::string(text) : std::string();
  }
  std::string name_or_none() {
    const std::string_view text = in_.text();
    require(text.empty() || is_fleet_name(text));
    return ok() ? std::string(text) : std::string();
  }
  // It is shown to people, so it must be harmless on a terminal.
  std::string text() {
    const std::string_view text = in_.text();
    require(text.size() <= kControlTextSizeMax &&
            std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
    return ok() ? std::string(text) : std::string();
  }
  ShardIndex shard() {
    const std::uint64_t index = in_.varint();
    require(index < limits::kShardsMax);
    return ok() ? ShardIndex(static_cast<std::uint32_t>(index)) : ShardIndex();
  }
  std::uint32_t u32() {
    const std::uint64_t value = in_.varint();
    require(value <= UINT32_MAX);
    return static_cast<std::uint32_t>(value);
  }
  Instant instant() {
    const std::int64_t millis = in_.i64();
    require(millis >= 0 && millis <= kMillisMax);
    return ok() ? from_millis(millis) : Instant();
  }

  // The year 9999, so that sums with it stay within their type.
  static constexpr std::int64_t kMillisMax = 253'402'300'799'999;

  ByteReader in_;
  bool ok_ = true;
};

}  // namespace

bool is_fleet_name(std::string_view text) {
  return !text.empty() && text.size() <= kControlNameSizeMax &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

std::string control_reason(std::string_view text) {
  std::string reason(text.substr(0, kControlReasonSizeMax));
  std::ranges::replace_if(
      reason, [](char c) { return c < ' ' || c > '~'; }, '?');
  return reason;
}

std::string encode_control(const ControlRecord& record) {
  std::string bytes;
  std::visit(Encoder(bytes), record);
  CHECK(bytes.size() <= kControlRecordSizeMax, "a control record is small");
  return bytes;
}

bool is_of_later_format(std::string_view bytes) {
  if (bytes.size() < kHeadSize + kChecksumSize || bytes.size() > kControlRecordSizeMax)
    return false;
  ByteReader head(bytes);
  if (head.u32() != kMagic || head.u8() <= kFormat) return false;
  const std::string_view covered = bytes.substr(0, bytes.size() - kChecksumSize);
  return ByteReader(bytes.substr(covered.size())).u64() == xxh3_64(covered);
}

Result<std::optional<ControlRecord>> decode_control(std::string_view bytes) {
  ByteReader head(bytes);
  const std::uint32_t magic = head.u32();
  const std::uint8_t format = head.u8(), kind = head.u8();
  if (!head.ok() || magic != kMagic) return fail("this is not a record of a fleet's control log");
  if (bytes.size() > kControlRecordSizeMax) return fail("a control record is too large");
  if (format != kFormat && !is_of_later_format(bytes))
    return fail(fmt::format("a record claims to have format {}, and does not", format));
  if (format != kFormat)
    return fail(
        fmt::format("a control record has format {}, which this version does not know: upgrade "
                    "the program",
                    format));
  Decoder in(bytes.substr(kHeadSize));
  std::optional<ControlRecord> record;
  // A number that is none of these is a kind of a later release.
  switch (Kind{kind}) {
    case Kind::kBeat:
      record = in.beat();
      break;
    case Kind::kCoordinatorClaim:
      record = in.claim();
      break;
    case Kind::kAssignment:
      record = in.assignment();
      break;
    case Kind::kRelease:
      record = in.release();
      break;
    case Kind::kFleetMetadata:
      record = in.metadata();
      break;
    case Kind::kDrain:
      record = in.drain();
      break;
    case Kind::kMove:
      record = in.move();
      break;
    case Kind::kForget:
      record = in.forget();
      break;
    case Kind::kSkip:
      record = in.skip();
      break;
  }
  if (!in.ok()) return fail(fmt::format("a control record of kind {} is damaged", kind));
  return record;
}

std::string control_key(const ControlRecord& record) {
  return std::visit(
      Overloaded{
          [](const Beat& beat) { return "beat/" + beat.node; },
          [](const CoordinatorClaim& claim) {
            return fmt::format("claim/{}/{}/{:x}", claim.term.value(), claim.node, claim.attempt);
          },
          [](const Assignment& assignment) {
            return fmt::format("assignment/{}/{}", assignment.shard.value(),
                               assignment.term.value());
          },
          [](const Release& release) {
            return fmt::format("release/{}/{}", release.shard.value(), release.node);
          },
          [](const FleetMetadata& metadata) { return fmt::format("founding/{:x}", metadata.id); },
          [](const Drain& drain) { return "drain/" + drain.node; },
          [](const Move& move) { return fmt::format("move/{}", move.shard.value()); },
          [](const Forget& forget) { return "forget/" + forget.node; },
          [](const Skip& skip) {
            return fmt::format("skip/{}/{}", skip.shard.value(), skip.offset);
          },
      },
      record);
}

}  // namespace stanchion::fleet

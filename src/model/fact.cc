#include "model/fact.h"

#include <fmt/format.h>

#include <concepts>
#include <cstring>
#include <type_traits>

#include "base/bytes.h"
#include "base/check.h"

namespace stanchion {
namespace {

constexpr std::uint8_t kRecordVersion = 1;

// The fields of each fact, listed once, in the order of their bytes. The writer, the reader and the
// printer all use this list. New fields are added only at the end of a list.
#define STANCHION_FIELDS(Type, ...)                      \
  template <class Visitor, class Self>                   \
  requires std::same_as<std::remove_const_t<Self>, Type> \
  void visit_fields(Visitor& v, Self& s) {               \
    v(__VA_ARGS__);                                      \
  }

STANCHION_FIELDS(QueueRef, s.account, s.region, s.name)
STANCHION_FIELDS(RedrivePolicy, s.target_arn, s.max_receive_count)
STANCHION_FIELDS(RedriveAllowPolicy, s.permission, s.source_arns)
STANCHION_FIELDS(QueueAttributes, s.visibility_timeout_seconds, s.delay_seconds, s.message_size_max,
                 s.retention_seconds, s.wait_time_seconds, s.policy, s.redrive, s.redrive_allow,
                 s.kms_master_key_id, s.kms_reuse_seconds, s.managed_sse, s.fifo,
                 s.content_based_deduplication, s.deduplication_scope, s.throughput_limit)
STANCHION_FIELDS(MessagesReceived::Item, s.seq, s.visible_again)
STANCHION_FIELDS(MessagesLeft::Item, s.seq, s.transfer, s.destination)
STANCHION_FIELDS(MessagesChosen::Item, s.seq, s.group)
STANCHION_FIELDS(Hash128, s.low, s.high)
STANCHION_FIELDS(ShardFounded, s.receipt_key)
STANCHION_FIELDS(QueueCreated, s.queue, s.ref, s.attributes, s.tags)
STANCHION_FIELDS(QueueDeleted, s.queue)
STANCHION_FIELDS(QueuePurged, s.queue)
STANCHION_FIELDS(QueueAttributesSet, s.queue, s.attributes)
STANCHION_FIELDS(QueueTagged, s.queue, s.tags)
STANCHION_FIELDS(QueueUntagged, s.queue, s.keys)
STANCHION_FIELDS(MessageSent, s.queue, s.seq, s.due, s.content, s.deduplication)
STANCHION_FIELDS(MessagesReceived, s.queue, s.items, s.attempt_id)
STANCHION_FIELDS(MessagesDeleted, s.queue, s.seqs)
STANCHION_FIELDS(VisibilityChanged, s.queue, s.items, s.attempt_id)
STANCHION_FIELDS(MessagesLeft, s.queue, s.reason, s.task, s.items)
STANCHION_FIELDS(TransferAccepted, s.source, s.transfer, s.settled_below, s.queue, s.seq, s.content,
                 s.retained_from, s.receive_count, s.first_received)
STANCHION_FIELDS(TransfersSettled, s.transfers)
STANCHION_FIELDS(TransferRefused, s.transfer)
STANCHION_FIELDS(MoveTaskStarted, s.queue, s.task, s.destination_arn, s.max_per_second, s.to_move)
STANCHION_FIELDS(MoveTaskEnded, s.queue, s.task, s.status, s.failure_reason)
STANCHION_FIELDS(MessagesChosen, s.queue, s.items)
STANCHION_FIELDS(TransfersResumed, s.next)
#undef STANCHION_FIELDS

template <class T>
concept Structured = requires(T& t, int& v) {
  visit_fields(v, t);
};

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <class... T>
  void operator()(const T&... fields) {
    (put(fields), ...);
  }

 private:
  template <std::integral T>
  void put(T v) {
    out_.varint(static_cast<std::uint64_t>(v));
  }
  template <class T>
  requires std::is_enum_v<T>
  void put(T v) { out_.u8(static_cast<std::uint8_t>(v)); }
  template <class Tag, class T>
  void put(Strong<Tag, T> v) {
    out_.varint(v.value());
  }
  void put(Instant v) { out_.i64(to_millis(v)); }
  void put(const std::string& v) { out_.text(v); }
  void put(const ContentPtr& v) { out_.text(v->encoded()); }
  void put(const MacKey& v) { out_.raw(as_text(v)); }
  template <class Tag>
  void put(const Uuid<Tag>& v) {
    out_.raw(as_text(v.bytes));
  }
  void put(const Hash128& v) {
    out_.u64(v.low);
    out_.u64(v.high);
  }
  void put(const StringMap& map) {
    out_.varint(map.size());
    for (const auto& [key, value] : map) out_.text(key), out_.text(value);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    out_.varint(list.size());
    for (const T& item : list) put(item);
  }
  template <class T>
  void put(const std::optional<T>& v) {
    out_.u8(v.has_value());
    if (v) put(*v);
  }
  // A part that may get more fields in later releases is written with its size, as a fact is.
  void put(const QueueAttributes& attributes) {
    std::string bytes;
    FieldWriter fields(bytes);
    visit_fields(fields, attributes);
    out_.text(bytes);
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& structured) { visit_fields(*this, structured); }

  ByteWriter out_;
};

// The values of an enum in a fact are 1 to this value.
constexpr auto last_of(RedriveAllowPolicy::Permission) {
  return RedriveAllowPolicy::Permission::kByQueue;
}
constexpr auto last_of(DeduplicationScope) {
  return DeduplicationScope::kMessageGroup;
}
constexpr auto last_of(ThroughputLimit) {
  return ThroughputLimit::kPerMessageGroupId;
}
constexpr auto last_of(TransferReason) {
  return TransferReason::kRedrive;
}
constexpr auto last_of(MoveTaskStatus) {
  return MoveTaskStatus::kFailed;
}

// Reads fields until the bytes of the fact end; fields after the end keep their defaults.
class FieldReader {
 public:
  explicit FieldReader(std::string_view in) : in_(in) {}

  bool ok() const { return ok_ && in_.ok(); }

  template <class... T>
  void operator()(T&... fields) {
    (take_unless_absent(fields), ...);
  }

 private:
  template <class T>
  void take_unless_absent(T& field) {
    if (depth_ == 0 && in_.at_end()) {
      // Content is the one field without a default: a message without it means damage.
      if constexpr (std::is_same_v<T, ContentPtr>) ok_ = false;
      return;
    }
    take(field);
  }

  template <std::integral T>
  void take(T& v) {
    v = static_cast<T>(in_.varint());
  }
  void take(bool& v) { v = in_.varint() != 0; }
  template <class T>
  requires std::is_enum_v<T>
  void take(T& v) {
    v = static_cast<T>(in_.u8());
    if (v < static_cast<T>(1) || v > last_of(v)) ok_ = false;
  }
  template <class Tag, class T>
  void take(Strong<Tag, T>& v) {
    v = Strong<Tag, T>(static_cast<T>(in_.varint()));
  }
  void take(Instant& v) { v = from_millis(in_.i64()); }
  void take(std::string& v) { v = in_.text(); }
  void take(ContentPtr& v) {
    auto content = Content::parse(in_.text());
    if (!content) {
      ok_ = false;
      return;
    }
    v = std::move(*content);
  }
  void take(MacKey& v) { take_raw(v); }
  template <class Tag>
  void take(Uuid<Tag>& v) {
    take_raw(v.bytes);
  }
  template <class Array>
  void take_raw(Array& v) {
    const std::string_view bytes = in_.raw(v.size());
    if (bytes.size() == v.size()) std::memcpy(v.data(), bytes.data(), v.size());
  }
  void take(Hash128& v) {
    v.low = in_.u64();
    v.high = in_.u64();
  }
  void take(StringMap& map) {
    for (std::size_t n = in_.count(); n > 0 && in_.ok(); --n) {
      std::string key(in_.text());
      map[std::move(key)] = in_.text();
    }
  }
  template <class T>
  void take(std::vector<T>& list) {
    ++depth_;
    for (std::size_t n = in_.count(); n > 0 && ok(); --n) take(list.emplace_back());
    --depth_;
  }
  template <class T>
  void take(std::optional<T>& v) {
    ++depth_;
    if (in_.u8() != 0) take(v.emplace());
    --depth_;
  }
  void take(QueueAttributes& attributes) {
    FieldReader fields(in_.text());
    visit_fields(fields, attributes);
    ok_ = ok_ && fields.ok();
  }
  template <class T>
  requires std::is_class_v<T>
  void take(T& structured) {
    ++depth_;
    visit_fields(*this, structured);
    --depth_;
  }

  ByteReader in_;
  int depth_ = 0;  // Only a fact or part that has a size may lack fields.
  bool ok_ = true;
};

class FieldPrinter {
 public:
  explicit FieldPrinter(std::string& out) : out_(out) {}

  template <class... T>
  void operator()(const T&... fields) {
    out_ += '(';
    bool first = true;
    ((out_ += first ? "" : ", ", first = false, put(fields)), ...);
    out_ += ')';
  }

 private:
  template <std::integral T>
  void put(T v) {
    out_ += fmt::format("{}", v);
  }
  template <class T>
  requires std::is_enum_v<T>
  void put(T v) { out_ += fmt::format("{}", static_cast<int>(v)); }
  template <class Tag, class T>
  void put(Strong<Tag, T> v) {
    out_ += fmt::format("{}", v.value());
  }
  void put(Instant v) { out_ += fmt::format("@{}", to_millis(v)); }
  void put(const std::string& v) { out_ += fmt::format("\"{}\"", v); }
  void put(const ContentPtr& v) {
    out_ += fmt::format("message {} of {} bytes", v->id().text(), v->body().size());
  }
  void put(const MacKey&) { out_ += "(secret)"; }
  template <class Tag>
  void put(const Uuid<Tag>& v) {
    out_ += v.text();
  }
  void put(const Hash128& v) { out_ += fmt::format("{:016x}{:016x}", v.high, v.low); }
  void put(const StringMap& map) {
    out_ += '{';
    for (const auto& [key, value] : map) out_ += fmt::format("{}={} ", key, value);
    out_ += '}';
  }
  template <class T>
  void put(const std::vector<T>& list) {
    out_ += '[';
    for (const T& item : list) put(item), out_ += ' ';
    out_ += ']';
  }
  template <class T>
  void put(const std::optional<T>& v) {
    if (v) {
      put(*v);
    } else {
      out_ += '-';
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void put(const T& structured) { visit_fields(*this, structured); }

  std::string& out_;
};

// What a fact says became of messages, counted. MessagesChosen only says where they were.
template <class F>
std::size_t messages_of(const F& fact) {
  if constexpr (std::is_same_v<F, MessagesReceived> || std::is_same_v<F, VisibilityChanged> ||
                std::is_same_v<F, MessagesLeft>) {
    return fact.items.size();
  } else if constexpr (std::is_same_v<F, MessagesDeleted>) {
    return fact.seqs.size();
  } else if constexpr (std::is_same_v<F, TransfersSettled>) {
    return fact.transfers.size();
  } else {
    return std::is_same_v<F, MessageSent> || std::is_same_v<F, TransferAccepted> ||
           std::is_same_v<F, TransferRefused>;
  }
}

template <std::size_t I = 0>
bool read_fact(std::uint8_t number, std::string_view fields, std::vector<Fact>& out) {
  if constexpr (I < std::variant_size_v<Fact>) {
    using F = std::variant_alternative_t<I, Fact>;
    if (F::kNumber != number) return read_fact<I + 1>(number, fields, out);
    FieldReader reader(fields);
    visit_fields(reader, std::get<F>(out.emplace_back(std::in_place_type<F>)));
    return reader.ok();
  } else {
    return false;
  }
}

}  // namespace

void RecordWriter::start(Instant at) {
  bytes_.clear();
  facts_ = messages_ = 0;
  ByteWriter writer(bytes_);
  writer.u8(kRecordVersion);
  writer.i64(to_millis(at));
}

template <class F>
void RecordWriter::add(const F& fact) {
  ByteWriter writer(bytes_);
  writer.u8(F::kNumber);
  const std::size_t size_at = bytes_.size();
  writer.u32(0);
  FieldWriter fields(bytes_);
  visit_fields(fields, fact);
  const auto size = static_cast<std::uint32_t>(bytes_.size() - size_at - sizeof(std::uint32_t));
  std::memcpy(bytes_.data() + size_at, &size, sizeof size);
  ++facts_;
  messages_ += messages_of(fact);
}

template void RecordWriter::add(const ShardFounded&);
template void RecordWriter::add(const QueueCreated&);
template void RecordWriter::add(const QueueDeleted&);
template void RecordWriter::add(const QueuePurged&);
template void RecordWriter::add(const QueueAttributesSet&);
template void RecordWriter::add(const QueueTagged&);
template void RecordWriter::add(const QueueUntagged&);
template void RecordWriter::add(const MessageSent&);
template void RecordWriter::add(const MessagesReceived&);
template void RecordWriter::add(const MessagesDeleted&);
template void RecordWriter::add(const VisibilityChanged&);
template void RecordWriter::add(const MessagesLeft&);
template void RecordWriter::add(const TransferAccepted&);
template void RecordWriter::add(const TransfersSettled&);
template void RecordWriter::add(const TransferRefused&);
template void RecordWriter::add(const MoveTaskStarted&);
template void RecordWriter::add(const MoveTaskEnded&);
template void RecordWriter::add(const MessagesChosen&);
template void RecordWriter::add(const TransfersResumed&);

Result<Record> parse_record(std::string_view bytes) {
  ByteReader reader(bytes);
  const std::uint8_t version = reader.u8();
  if (reader.ok() && version != kRecordVersion)
    return fail(fmt::format("record of version {}: it was written by a newer release", version));
  Record record;
  record.at = from_millis(reader.i64());
  while (reader.ok() && !reader.at_end()) {
    const std::uint8_t number = reader.u8();
    const std::string_view fields = reader.raw(reader.u32());
    if (!reader.ok()) break;
    if (!read_fact(number, fields, record.facts))
      return fail(fmt::format("fact number {} is unknown or damaged", number));
  }
  if (!reader.ok()) return fail("record is cut short");
  return record;
}

std::string_view name_of(const Fact& fact) {
  static constexpr std::string_view kNames[] = {
      "ShardFounded",       "QueueCreated",     "QueueDeleted",      "QueuePurged",
      "QueueAttributesSet", "QueueTagged",      "QueueUntagged",     "MessageSent",
      "MessagesReceived",   "MessagesDeleted",  "VisibilityChanged", "MessagesLeft",
      "TransferAccepted",   "TransfersSettled", "TransferRefused",   "MoveTaskStarted",
      "MoveTaskEnded",      "MessagesChosen",   "TransfersResumed"};
  static_assert(std::size(kNames) == std::variant_size_v<Fact>);
  return kNames[fact.index()];
}

std::string describe(const Fact& fact) {
  std::string out(name_of(fact));
  FieldPrinter printer(out);
  std::visit([&](const auto& f) { visit_fields(printer, f); }, fact);
  return out;
}

}  // namespace stanchion

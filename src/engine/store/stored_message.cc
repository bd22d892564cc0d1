#include "engine/store/stored_message.h"

#include "base/bytes.h"
#include "base/check.h"
#include "model/dates.h"

namespace stanchion::engine {
namespace {

std::uint64_t zigzag(Duration d) {
  const std::int64_t n = d.count();
  return static_cast<std::uint64_t>(n) << 1 ^ static_cast<std::uint64_t>(n >> 63);
}

Duration unzigzag(std::uint64_t n) {
  return Duration(static_cast<std::int64_t>(n >> 1) ^ -static_cast<std::int64_t>(n & 1));
}

// Entry: size u8; entered as a varint; how much earlier the retention began and how much later it
// is due, zigzag; the receive count, and if it is not 0, when it was first received, zigzag from
// entered. Small enough that most entries are stored inline.
void write_entry(std::string& out, const Message& message) {
  CHECK(is_date(message.entered) && is_date(message.retained_from) && is_date(message.due) &&
            is_date(message.first_received),
        "what is written of a message can be read");
  CHECK(message.content != nullptr, "a message is written with its content");
  const std::size_t at = out.size();
  out.push_back('\0');
  ByteWriter writer(out);
  writer.varint(static_cast<std::uint64_t>(to_millis(message.entered)));
  writer.varint(zigzag(message.entered - message.retained_from));
  writer.varint(zigzag(message.due - message.entered));
  writer.varint(message.receive_count);
  if (message.receive_count > 0) writer.varint(zigzag(message.first_received - message.entered));
  out[at] = static_cast<char>(out.size() - at - 1);
}

// The size of most entries.
constexpr std::size_t kEntrySize = 11;

}  // namespace

Put put_message(StockName stock, LaneName lane, const Message& message) {
  Put put{message_key(stock, lane, message.seq), {}, message.content};
  write_entry(put.head, message);
  return put;
}

Series series_between(StockName stock, LaneName lane, Seq first, Seq last, std::size_t count) {
  Series series{message_key(stock, lane, first), message_key(stock, lane, last.next()), {}, {}, 0};
  series.heads.reserve(count * kEntrySize);
  series.entries.reserve(count);
  return series;
}

void add_message(Series& series, const Message& message) {
  CHECK(series.entries.empty() || series.entries.back().number < message.seq.value(),
        "a series is in order");
  const std::size_t head = series.heads.size();
  write_entry(series.heads, message);
  series.value_bytes += series.heads.size() - head + message.content->encoded().size();
  series.entries.push_back(
      {message.seq.value(), message.content, static_cast<std::uint32_t>(series.heads.size())});
}

namespace {

Status parse_entry(std::string_view head, StoredMessage& out) {
  if (head.empty() || head.size() != 1U + static_cast<std::uint8_t>(head[0]))
    return fail("a message in the store is cut short");
  ByteReader reader(head.substr(1));
  out.entered = from_millis(static_cast<std::int64_t>(reader.varint()));
  out.retained_from = out.entered - unzigzag(reader.varint());
  out.due = out.entered + unzigzag(reader.varint());
  const std::uint64_t receives = reader.varint();
  out.receive_count = static_cast<std::uint32_t>(receives);
  if (out.receive_count > 0) out.first_received = out.entered + unzigzag(reader.varint());
  if (!reader.ok() || !reader.at_end() || receives > UINT32_MAX || !is_date(out.entered) ||
      !is_date(out.retained_from) || !is_date(out.due) || !is_date(out.first_received))
    return fail("a message in the store has a damaged entry");
  return {};
}

Status parse_one(Seq seq, std::string_view head, std::string_view encoded, bool with_content,
                 std::vector<StoredMessage>& out) {
  StoredMessage message;
  message.seq = seq;
  RETURN_IF_FAILED(parse_entry(head, message));
  if (with_content) {
    auto content = Content::parse(encoded);
    if (!content) return std::unexpected(std::move(content).error());
    message.content = std::move(*content);
  }
  out.push_back(std::move(message));
  return {};
}

}  // namespace

Status parse_stored_messages(std::string_view key, std::string_view value, bool with_content,
                             std::vector<StoredMessage>& out) {
  KeyReader parts(key);
  parts.type();
  parts.stock();
  parts.lane();
  Seq seq = parts.seq();
  if (!parts.complete() || value.empty()) return fail("a message in the store is cut short");
  if (value[0] != Series::kPackMark) {
    const std::size_t head = 1U + static_cast<std::uint8_t>(value[0]);
    if (value.size() < head) return fail("a message in the store is cut short");
    return parse_one(seq, value.substr(0, head), value.substr(head), with_content, out);
  }
  ByteReader reader(value.substr(1));
  while (!reader.at_end()) {
    seq = Seq(seq.value() + reader.varint());
    const std::string_view head = reader.text();
    const std::string_view encoded = reader.text();
    if (!reader.ok()) return fail("a pack of messages in the store is cut short");
    RETURN_IF_FAILED(parse_one(seq, head, encoded, with_content, out));
  }
  return {};
}

}  // namespace stanchion::engine

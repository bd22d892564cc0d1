#include "load/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"

namespace stanchion::load {
namespace {

constexpr std::size_t kRunDigits = 6;
constexpr std::size_t kQueueDigits = 5;
constexpr std::size_t kGroupDigits = 6;
constexpr std::size_t kNumberDigits = 8;
static_assert(kRunDigits + kQueueDigits + kGroupDigits + kNumberDigits + 4 == kBodySizeMin);

void append_hex(std::string& out, std::uint32_t value, std::size_t digits) {
  for (std::size_t i = digits; i-- > 0;) out.push_back("0123456789abcdef"[value >> (4 * i) & 0xF]);
  out.push_back('-');
}

// Reads `digits` digits and the hyphen after them.
bool take_hex(std::string_view& text, std::size_t digits, std::uint32_t& value) {
  if (text.size() <= digits || text[digits] != '-') return false;
  value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  text.remove_prefix(digits + 1);
  return true;
}

void set_bit(std::vector<bool>& bits, std::uint32_t at) {
  if (bits.size() <= at) bits.resize(std::max<std::size_t>(at + 1, bits.size() * 2));
  bits[at] = true;
}

bool bit(const std::vector<bool>& bits, std::uint32_t at) {
  return at < bits.size() && bits[at];
}

// Sequence numbers of AWS have 20 digits and may exceed 2^64; the comparison still works after a
// wrap.
std::uint64_t parse_sequence(std::string_view text) {
  std::uint64_t value = 0;
  for (const char c : text) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  return value == 0 && !text.empty() ? 1 : value;
}

bool equals_hex(const Md5& digest, std::string_view hex) {
  if (hex.size() != 2 * digest.size()) return false;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    if (hex[2 * i] != "0123456789abcdef"[digest[i] >> 4]) return false;
    if (hex[2 * i + 1] != "0123456789abcdef"[digest[i] & 0xF]) return false;
  }
  return true;
}

}  // namespace

Ledger::Ledger(const Shape& shape, std::uint32_t run)
    : shape_(shape), run_(fmt::format("{:06x}", run & 0xFFFFFF)), books_(shape.queues) {
  // Letters that need no escaping in JSON, in XML or in a form.
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  std::uint64_t state = 1;
  while (filler_.size() + kBodySizeMin < shape_.body_size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    filler_.push_back(kLetters[state >> 58]);
  }
}

MessageId Ledger::next(std::uint32_t queue) {
  const std::uint32_t number = books_[queue].next++;
  const auto groups = static_cast<std::uint32_t>(std::max<std::size_t>(shape_.groups, 1));
  return {queue, number % groups, number};
}

void Ledger::append_body(std::string& out, const MessageId& id) const {
  out.append(run_).push_back('-');
  append_hex(out, id.queue, kQueueDigits);
  append_hex(out, id.group, kGroupDigits);
  append_hex(out, id.number, kNumberDigits);
  out.append(filler_);
}

bool parse_body(std::string_view body, std::string_view run, MessageId& id) {
  if (!body.starts_with(run) || body.size() <= run.size() || body[run.size()] != '-') return false;
  body.remove_prefix(run.size() + 1);
  return take_hex(body, kQueueDigits, id.queue) && take_hex(body, kGroupDigits, id.group) &&
         take_hex(body, kNumberDigits, id.number);
}

void Ledger::on_sent(const MessageId& id, std::string_view body, std::string_view md5,
                     std::string_view sequence) {
  QueueBook& book = books_[id.queue];
  ++findings_.sent;
  set_bit(book.sent, id.number);
  if (bit(book.received, id.number)) ++received_sent_;
  check_digest(body, md5);
  if (!shape_.fifo) return;
  if (sequence.empty() ||
      !std::ranges::all_of(sequence, [](char c) { return c >= '0' && c <= '9'; }))
    return complain(findings_.disordered, "a send to a FIFO queue was answered without a number");
  if (book.sequences.size() <= id.number)
    book.sequences.resize(std::max<std::size_t>(id.number + 1, book.sequences.size() * 2));
  book.sequences[id.number] = parse_sequence(sequence);
}

void Ledger::on_received(std::uint32_t queue, std::string_view body, std::string_view md5) {
  MessageId id;
  if (!parse_body(body, run_, id)) {
    ++findings_.foreign;
    return;
  }
  if (id.queue != queue || id.number >= books_[queue].next)
    return complain(findings_.damaged,
                    fmt::format("received from queue {} what was never sent there: {}", queue,
                                body.substr(0, kBodySizeMin)));
  if (body.substr(kBodySizeMin) != filler_)
    return complain(findings_.damaged, fmt::format("the body of {} is not what was sent",
                                                   body.substr(0, kBodySizeMin)));
  check_digest(body, md5);
  QueueBook& book = books_[queue];
  if (bit(book.received, id.number)) {
    ++findings_.twice;
    if (shape_.fifo && findings_.first.empty())
      findings_.first = fmt::format("received twice: {}", body.substr(0, kBodySizeMin));
    return;
  }
  set_bit(book.received, id.number);
  ++findings_.received;
  if (bit(book.sent, id.number)) ++received_sent_;
  if (shape_.fifo) check_order(book, id);
}

void Ledger::check_order(QueueBook& book, const MessageId& id) {
  // The answer to the send may not have arrived yet; then there is nothing to compare.
  const std::uint64_t sequence = id.number < book.sequences.size() ? book.sequences[id.number] : 0;
  if (sequence == 0) return;
  if (book.last.size() <= id.group)
    book.last.resize(std::max<std::size_t>(shape_.groups, id.group + 1));
  std::uint64_t& last = book.last[id.group];
  if (last != 0 && static_cast<std::int64_t>(sequence - last) <= 0)
    return complain(findings_.disordered,
                    fmt::format("group {} of queue {}: sequence number {} came after {}", id.group,
                                id.queue, sequence, last));
  last = sequence;
}

void Ledger::check_digest(std::string_view body, std::string_view md5) {
  if (shape_.check_every == 0 || until_check_-- > 0) return;
  until_check_ = shape_.check_every - 1;
  ++findings_.digests;
  if (!equals_hex(stanchion::md5(body), md5))
    complain(findings_.damaged,
             fmt::format("the MD5 of {} is given as \"{}\"", body.substr(0, kBodySizeMin), md5));
}

void Ledger::complain(std::uint64_t& counter, std::string text) {
  ++counter;
  if (findings_.first.empty()) findings_.first = std::move(text);
}

Findings Ledger::findings() const {
  Findings result = findings_;
  if (!result.drained) return result;
  for (std::size_t q = 0; q < books_.size(); ++q)
    for (std::uint32_t n = 0; n < books_[q].sent.size(); ++n)
      if (books_[q].sent[n] && !bit(books_[q].received, n)) {
        if (result.lost++ == 0 && result.first.empty())
          result.first = fmt::format("message {:x} of queue {} never came", n, q);
      }
  return result;
}

}  // namespace stanchion::load

#include "engine/transfers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/chunk.h"
#include "engine/store/sense.h"
#include "engine/store/store_keys.h"
#include "model/dates.h"

namespace stanchion::engine {
namespace {

// A node of the map, and the allocator's overhead of its parts.
constexpr std::size_t kNodeBytes = 128;

// How many times as many numbers there are while the first of those under way cannot be read.
constexpr std::uint64_t kUnreadableFactor = 4;

std::size_t content_bytes(const Departure& departure) {
  return departure.message->content ? departure.message->content->footprint() : 0;
}

using Accounts = std::map<std::string, std::size_t, std::less<>>;

void give_back(Accounts& accounts, std::string_view account, std::size_t bytes) {
  const auto found = accounts.find(account);
  found->second -= bytes;
  if (found->second == 0) accounts.erase(found);
}

}  // namespace

// The fifth part of the ARN.
std::string_view Outbox::account_of(const Departure& departure) {
  std::string_view rest = departure.source_arn;
  for (int i = 0; i < 4; ++i) rest.remove_prefix(std::min(rest.find(':'), rest.size() - 1) + 1);
  return rest.substr(0, rest.find(':'));
}

void Outbox::count(Departure& departure) {
  departure.bytes = bytes_in_memory(departure);
  bytes_ += departure.bytes;
  in_memory_.add(departure.bytes);
  const std::string_view account = account_of(departure);
  const auto found = accounts_.find(account);
  if (found != accounts_.end()) {
    found->second += departure.bytes;
  } else {
    accounts_.emplace(account, departure.bytes);
  }
}

void Outbox::add(TransferNo number, Departure departure) {
  CHECK(number >= next_, "transfer numbers only grow");
  next_ = number.next();
  if (departure.message->home != nullptr) departure.home = departure.message->home->from;
  Departure& added = under_way_.emplace(number, std::move(departure)).first->second;
  count(added);
  since_saved_ += added.bytes;
  since_durable_ += added.bytes;
}

bool Outbox::has_room(std::string_view account, std::size_t bytes_max,
                      std::uint64_t numbers_max) const {
  if (under_way_.empty()) return true;
  if (bytes_ >= bytes_max || !has_numbers(account, numbers_max)) return false;
  const auto found = accounts_.find(account);
  return found == accounts_.end() || found->second < bytes_max / 2;
}

// Other shards remember which numbers they accepted from the first unsettled one on, so those in
// use must be close to each other. The account whose message waits longest is the first to have no
// more. What cannot be read waits until the store is repaired, and may not be taken for settled,
// because a later start may be able to read it: beyond it there are some more numbers.
bool Outbox::has_numbers(std::string_view account, std::uint64_t most) const {
  const auto in_use = [this](TransferNo first) { return next_.value() - first.value(); };
  if (in_use(settled_below()) < most / 2) return true;
  auto first = under_way_.lower_bound(readable_from_);
  while (first != under_way_.end() && first->second.unreadable) ++first;
  readable_from_ = first == under_way_.end() ? next_ : first->first;
  if (in_use(settled_below()) >= kUnreadableFactor * most || in_use(readable_from_) >= most)
    return false;
  return first == under_way_.end() || in_use(readable_from_) < most / 2 ||
         account_of(first->second) != account;
}

const Departure* Outbox::hand_over(TransferNo& from, TransferNo end, std::size_t bytes_max,
                                   std::vector<ColdRead>& wanted) {
  auto it = under_way_.lower_bound(from);
  while (it != under_way_.end() && it->second.unreadable) ++it;
  if (it == under_way_.end() || it->first >= end) {
    from = std::max(from, end);
    return nullptr;
  }
  from = it->first;
  Departure& departure = it->second;
  if (!departure.handed_over) {
    if (handed_over_ > 0 && handed_over_ + departure.bytes > bytes_max) return nullptr;
    if (!departure.message->content) {
      request(it->first, departure, wanted);
      return nullptr;
    }
    departure.handed_over = true;
    handed_over_ += departure.bytes;
  }
  from = from.next();
  return &departure;
}

void Outbox::drop_content(Departure& departure) {
  in_memory_.subtract(content_bytes(departure));
  departure.message->content = nullptr;
}

std::size_t Outbox::evict(std::size_t target) {
  std::size_t gone = 0;
  auto it = under_way_.lower_bound(evict_below_);
  while (gone < target && it != under_way_.begin()) {
    --it;
    evict_below_ = it->first;
    Departure& departure = it->second;
    if (departure.handed_over || !departure.message->content) continue;
    gone += content_bytes(departure);
    drop_content(departure);
  }
  return gone;
}

void Outbox::saved() {
  durable_below_ = evict_below_ = saved_below_;
  since_durable_ = since_saved_;
}

void Outbox::request(TransferNo number, Departure& departure, std::vector<ColdRead>& wanted) {
  if (std::exchange(departure.reading, true)) return;
  CHECK(number < durable_below_, "the store has the content of every departure that is without");
  wanted.push_back({.purpose = ColdRead::Purpose::kDeparture,
                    .stock = {departure.queue},
                    .transfer = number,
                    .range = departures_between(number, number)});
}

bool Outbox::want(TransferNo number, std::vector<ColdRead>& wanted) {
  Departure* departure = find(number);
  if (departure == nullptr || departure->message->content) return false;
  request(number, *departure, wanted);
  return true;
}

Status Outbox::install(TransferNo number, std::vector<StoredMessage> found) {
  Departure* departure = find(number);
  if (departure == nullptr) return {};
  departure->reading = false;
  Message& message = *departure->message;
  if (message.content) return {};
  if (found.size() != 1 || found.front().seq != message.seq)
    return fail("the store is damaged: the content of a message on its way is missing");
  message.content = std::move(found.front().content);
  in_memory_.add(content_bytes(*departure));
  return {};
}

void Outbox::give_up(TransferNo number) {
  Departure* departure = find(number);
  if (departure == nullptr || departure->message->content || departure->unreadable) return;
  departure->unreadable = true;
  // What never gets any further does not hold up the others.
  bytes_ -= departure->bytes;
  give_back(accounts_, account_of(*departure), std::exchange(departure->bytes, 0));
}

std::size_t Outbox::bytes_in_memory(const Departure& departure) {
  return sizeof(Departure) + sizeof(Message) + kNodeBytes + departure.source_arn.size() +
         departure.destination.account.size() + departure.destination.region.size() +
         departure.destination.name.size() + content_bytes(departure);
}

void Outbox::check_bytes() const {
  std::size_t bytes = 0;
  std::size_t in_memory = 0;
  std::size_t handed_over = 0;
  std::size_t since_saved = 0;
  std::size_t since_durable = 0;
  std::map<std::string, std::size_t, std::less<>> accounts;
  for (const auto& [number, departure] : under_way_) {
    bytes += departure.bytes;
    in_memory += bytes_in_memory(departure);
    if (departure.handed_over) handed_over += departure.bytes;
    if (number >= saved_below_) since_saved += departure.bytes;
    if (number >= durable_below_) since_durable += departure.bytes;
    if (departure.bytes > 0) accounts[std::string(account_of(departure))] += departure.bytes;
    CHECK(departure.message->content || number < durable_below_, "E9: what is not saved is here");
  }
  CHECK(bytes == bytes_ && in_memory == in_memory_.bytes() && handed_over == handed_over_ &&
            since_saved == since_saved_ && since_durable == since_durable_ && accounts == accounts_,
        "E9: departures are accounted for");
}

Departure* Outbox::find(TransferNo number) {
  const auto found = under_way_.find(number);
  return found == under_way_.end() ? nullptr : &found->second;
}

Departure Outbox::take(TransferNo number) {
  auto node = under_way_.extract(number);
  CHECK(!node.empty(), "a departure is settled once");
  if (pending_from_ <= number && number < pending_below_) save(number, node.mapped());
  if (number < saved_below_) settled_.push_back(number);
  Departure& departure = node.mapped();
  in_memory_.subtract(bytes_in_memory(departure));
  if (departure.handed_over) handed_over_ -= departure.bytes;
  bytes_ -= departure.bytes;
  if (number >= saved_below_) since_saved_ -= departure.bytes;
  if (number >= durable_below_) since_durable_ -= departure.bytes;
  if (departure.bytes > 0) give_back(accounts_, account_of(departure), departure.bytes);
  return std::move(departure);
}

void Outbox::begin_save(Batch& batch) {
  CHECK(!has_pending(), "one checkpoint at a time");
  batch_ = &batch;
  pending_settled_.swap(settled_);
  pending_from_ = saved_below_;
  pending_below_ = saved_below_ = next_;
  since_saved_ = 0;
}

std::size_t Outbox::save_some(std::size_t count) {
  std::size_t looked_at = 0;
  for (; !pending_settled_.empty() && looked_at < count; ++looked_at) {
    batch_->erased.push_back(departure_key(pending_settled_.back()));
    pending_settled_.pop_back();
  }
  auto it = under_way_.lower_bound(pending_from_);
  for (; pending_from_ < pending_below_ && looked_at < count; ++looked_at) {
    if (it == under_way_.end() || it->first >= pending_below_) {
      pending_from_ = pending_below_;
      break;
    }
    save(it->first, it->second);
    pending_from_ = it->first.next();
    ++it;
  }
  return looked_at;
}

void Outbox::save(TransferNo number, const Departure& departure) {
  const Message& message = *departure.message;
  CHECK(message.content != nullptr, "a message on its way is written with its content");
  Put put{departure_key(number), {}, message.content};
  std::string fields;
  ByteWriter writer(fields);
  writer.u64(departure.queue.value());
  writer.text(departure.source_arn);
  writer.text(departure.destination.arn());
  writer.u8(static_cast<std::uint8_t>(departure.reason));
  writer.raw(as_text(departure.task.bytes));
  writer.u64(departure.home.value());
  writer.u64(message.seq.value());
  for (const Instant t :
       {message.entered, message.retained_from, message.received, message.first_received})
    writer.i64(to_millis(t));
  writer.u32(message.receive_count);
  writer.u8(message.stays);
  ByteWriter(put.head).text(fields);
  batch_->puts.push_back(std::move(put));
}

Result<Departure> Outbox::parse(std::string_view value, Seq& home) {
  ByteReader outer(value);
  ByteReader reader(outer.text());
  Departure departure;
  departure.queue = QueueId(reader.u64());
  departure.source_arn = reader.text();
  const auto destination = parse_queue_arn(reader.text());
  departure.reason = static_cast<TransferReason>(reader.u8());
  const std::string_view task = reader.raw(departure.task.bytes.size());
  home = Seq(reader.u64());
  departure.message = std::make_unique<Message>();
  Message& message = *departure.message;
  message.seq = Seq(reader.u64());
  for (Instant* t :
       {&message.entered, &message.retained_from, &message.received, &message.first_received})
    *t = from_millis(reader.i64());
  message.receive_count = reader.u32();
  message.stays = reader.u8() != 0;
  const bool dated = is_date(message.entered) && is_date(message.retained_from) &&
                     is_date(message.received) && is_date(message.first_received);
  if (!reader.ok() || !reader.at_end() || !outer.ok() || !destination || !dated ||
      (departure.reason != TransferReason::kDeadLetter &&
       departure.reason != TransferReason::kRedrive))
    return makes_no_sense("a message on its way");
  departure.destination = *destination;
  std::ranges::copy(task, departure.task.bytes.begin());
  auto content = Content::parse(outer.raw(outer.remaining()));
  if (!content) return std::unexpected(std::move(content).error());
  message.content = std::move(*content);
  return departure;
}

void Outbox::load(TransferNo number, Departure departure, std::size_t bytes_max) {
  const auto [place, is_new] = under_way_.emplace(number, std::move(departure));
  CHECK(is_new, "a key is there once");
  count(place->second);
  if (in_memory_.bytes() > bytes_max) drop_content(place->second);
}

void Outbox::load_next(TransferNo next) {
  next_ = saved_below_ = durable_below_ = evict_below_ = next;
}

void Inbox::save(std::string& out) const {
  ByteWriter writer(out);
  writer.varint(sources_.size());
  for (const auto& [shard, source] : sources_) {
    writer.u32(shard.value());
    writer.u64(source.settled_below.value());
    writer.varint(source.accepted.size());
    for (const TransferNo number : source.accepted) writer.u64(number.value());
  }
}

bool Inbox::load(ByteReader& reader) {
  for (std::size_t left = reader.count(); left > 0; --left) {
    const auto [place, is_new] = sources_.try_emplace(ShardIndex(reader.u32()));
    if (!is_new) return false;
    Source& source = place->second;
    source.settled_below = TransferNo(reader.u64());
    for (std::size_t numbers = reader.count(); numbers > 0; --numbers) {
      const TransferNo number(reader.u64());
      const bool in_order = source.accepted.empty() || *source.accepted.rbegin() < number;
      if (number < source.settled_below || !in_order) return false;
      source.accepted.insert(source.accepted.end(), number);
    }
  }
  return reader.ok();
}

bool Inbox::has(ShardIndex source, TransferNo number) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return false;
  return number < found->second.settled_below || found->second.accepted.contains(number);
}

void Inbox::accept(ShardIndex shard, TransferNo number, TransferNo settled_below) {
  Source& source = sources_[shard];
  const bool added = source.accepted.insert(number).second;
  CHECK(added, "a transfer is accepted once");
  source.settled_below = std::max(source.settled_below, settled_below);
  source.accepted.erase(source.accepted.begin(), source.accepted.lower_bound(source.settled_below));
}

TransferNo Inbox::settled_below(ShardIndex source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? TransferNo() : found->second.settled_below;
}

TransferNo Inbox::end(ShardIndex source) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return {};
  const auto& [settled_below, accepted] = found->second;
  return accepted.empty() ? settled_below : std::max(settled_below, accepted.rbegin()->next());
}

std::size_t Inbox::remembered() const {
  std::size_t count = 0;
  for (const auto& [shard, source] : sources_) count += source.accepted.size();
  return count;
}

}  // namespace stanchion::engine

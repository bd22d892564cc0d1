#include "engine/transfers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/chunk.h"
#include "engine/store/sense.h"
#include "engine/store/store_keys.h"
#include "model/dates.h"

namespace stanchion::engine {

void Outbox::add(TransferNo number, Departure departure) {
  CHECK(number >= next_, "transfer numbers only grow");
  next_ = number.next();
  if (departure.message->home != nullptr) departure.home = departure.message->home->from;
  under_way_.emplace(number, std::move(departure));
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
  return std::move(node.mapped());
}

void Outbox::begin_save(Batch& batch) {
  CHECK(!has_pending(), "one checkpoint at a time");
  batch_ = &batch;
  pending_settled_.swap(settled_);
  pending_from_ = saved_below_;
  pending_below_ = saved_below_ = next_;
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

void Outbox::load(TransferNo number, Departure departure) {
  under_way_.emplace(number, std::move(departure));
}

void Outbox::load_next(TransferNo next) {
  next_ = saved_below_ = next;
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

std::size_t Inbox::remembered() const {
  std::size_t count = 0;
  for (const auto& [shard, source] : sources_) count += source.accepted.size();
  return count;
}

}  // namespace stanchion::engine

// What the auditor checks about every message that is handed out, and about every receive that gets
// none.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "model/limits.h"
#include "sim/auditor.h"
#include "sim/describe.h"

namespace stanchion::sim {
namespace {

using std::chrono::seconds;

// A call may take this much longer than it said, whatever happens to the wall clock: slow disks,
// delayed threads, a short poll of a group whose head is leaving.
constexpr Micros kPatience = 9 * kSecond;

constexpr std::size_t kNoLife = static_cast<std::size_t>(-1);

std::vector<AttributeView> views_of(const std::vector<MessageAttribute>& attributes) {
  std::vector<AttributeView> views;
  for (const MessageAttribute& a : attributes)
    views.push_back({a.name, *a.data_type, a.binary_value ? ValueKind::kBinary : ValueKind::kString,
                     a.binary_value ? *a.binary_value : *a.string_value});
  return views;
}

}  // namespace

void Auditor::settle(Call& call, const ReceiveMessage& r, const ReplyValue& reply) {
  const auto& result = std::get<ReceiveMessageResult>(reply);
  // A repeated attempt gets what the first one got, however many it asks for now.
  if (!r.positions.empty()) {
    check_choice(call, r, result);
  } else if (!r.attempt_id && std::ssize(result.messages) > r.max_number_of_messages.value_or(1)) {
    broken("A3", "a receive got more messages than it asked for");
  }
  for_each_of_attempt(r, [&](Delivery& delivery) {
    std::erase_if(delivery.changes, [&](const Change& change) { return change.op == call.op; });
  });
  if (result.messages.empty()) {
    ++statistics_.empty_receives;
    if (r.positions.empty()) check_empty(call, r);
    return;
  }
  check_attempt(call, r, result);
  std::vector<std::size_t> before;
  for (std::size_t i = 0; i < result.messages.size(); ++i) {
    take_delivery(call, r, result.messages[i], before);
    before.push_back(by_body_.at(std::string(result.messages[i].content->body())));
  }
  check_order_within(result);
  check_line(call, r, result);
}

// Checks the answer by itself, before comparing it with others.
Auditor::Delivery Auditor::delivery_of(const Call& call, const ReceiveMessage& r,
                                       const ReceivedMessage& received) {
  Delivery delivery;
  delivery.op = call.op;
  delivery.queue = r.queue.name;
  delivery.count = received.receive_count;
  delivery.handle = received.receipt_handle;
  delivery.attempt = r.attempt_id.value_or("");
  delivery.lo = delivery.taken_lo = call.op->lo;
  delivery.hi = call.op->hi;
  delivery.taken_from = call.op->from;
  if (received.receive_count == 1 && !r.attempt_id) {
    delivery.lo = delivery.hi = received.first_received;
    if (received.first_received < call.op->lo || received.first_received > call.op->hi)
      broken("A3", fmt::format("{} says that it was first received at {}, which is not when it was",
                               received.content->body(), to_millis(received.first_received)));
  }
  delivery.visibility = timeouts_of(r.queue.name, r.visibility_timeout, *call.op);
  return delivery;
}

void Auditor::take_delivery(Call& call, const ReceiveMessage& r, const ReceivedMessage& received,
                            const std::vector<std::size_t>& before) {
  ++statistics_.deliveries;
  const std::string body(received.content->body());
  const auto found = by_body_.find(body);
  if (found == by_body_.end()) broken("A1", fmt::format("{} was never sent", body));
  Message& message = messages_[found->second];
  if (!message.op->may_have_happened())
    broken("A8", fmt::format("{} was refused when it was sent, and is delivered", body));
  if (message.duplicate)
    broken("A5", fmt::format("{} was dropped as a repetition, and is delivered", body));
  if (std::ranges::find(before, found->second) != before.end())
    broken("A3", fmt::format("{} is twice in one answer", body));
  check_bytes(message, received);
  const std::string& name = r.queue.name;
  const std::size_t index = life_of(call, message, received, name);
  if (index == kNoLife) return;
  Life& life = message.lives[index];
  check_place(call, message, life, received, name);

  Delivery delivery = delivery_of(call, r, received);
  // The same receive once more: only a repeated attempt may do that.
  for (Delivery& known : life.deliveries) {
    if (known.count != delivery.count) continue;
    if (delivery.attempt.empty() || known.attempt != delivery.attempt ||
        known.handle != delivery.handle)
      broken("A3", fmt::format("{} was handed out twice as receive {}{}", body, delivery.count,
                               story_of(message)));
    ++statistics_.repeated_attempts;
    known.changes.push_back(
        {call.op, r.visibility_timeout, receipt_surely_valid(message, index, known, *call.op)});
    return;
  }
  note_other_tries(call, r, delivery);
  // By the receipt of another receive, on a standard queue.
  if (!message.fifo)
    for (const Delivery& other : life.deliveries)
      for (const Change& change : other.changes)
        if (other.queue == name && !change.op->before(*call.op) &&
            std::ranges::find(delivery.changes, change.op, &Change::op) == delivery.changes.end())
          delivery.changes.push_back({change.op, change.timeout});
  check_count(call, message, life, delivery);
  check_timing(call, message, life, delivery);
  const bool current = index + 1 == message.lives.size() && life.home == name;
  if (message.fifo && current) check_order(call, message, delivery, before);
  if (message.gone &&
      (call.op->from > *message.gone || (message.gone_count > 0 && message.gone_life == index &&
                                         delivery.count > message.gone_count)))
    broken("A2", fmt::format("{} was {} and is delivered again{}", body, message.gone_by,
                             story_of(message)));
  by_handle_[delivery.handle] = {found->second, index, life.deliveries.size()};
  life.deliveries.push_back(std::move(delivery));
  resolve_twins(message);
  if (draining_) {
    message.drained = true;
    ++statistics_.found_at_end;
  }
}

void Auditor::check_bytes(const Message& message, const ReceivedMessage& received) const {
  const Content& content = *received.content;
  const auto wrong = [&](const char* what) {
    broken("A1", fmt::format("{} came back with another {}", message.body, what));
  };
  if (content.body_md5() != md5(message.body)) wrong("MD5");
  if (content.sender() != message.sender) wrong("sender");
  if (content.group() != message.group()) wrong("group");
  if (content.attributes() != views_of(message.sent.attributes)) wrong("attribute");
  std::string trace;
  for (const MessageAttribute& a : message.sent.system_attributes) trace = *a.string_value;
  if (content.trace_header() != trace) wrong("trace header");
  if (received.sequence_number.has_value() != message.fifo) wrong("sequence number");
  if (!message.fifo) return;
  // A FIFO dead-letter queue sees the message's id as the deduplication id.
  const bool was_dead =
      message.lives.size() > 1 || message.life().dead_letter || !content.source_arn().empty();
  if (content.deduplication_id() != message.deduplication_id && !was_dead &&
      message.lives.front().id == content.id())
    wrong("deduplication id");
}

// Whether a move task can have moved a message from `home`, or its dead-letter queue, to `to`.
bool Auditor::can_be_brought(const std::string& home, const std::string& to) const {
  for (const auto& [source, dead] : queues_) {
    const bool was_there = source == home || dead.sources.contains(home);
    if (!was_there) continue;
    for (const MoveTask& task : dead.tasks)
      if (task.op->may_have_happened() &&
          (task.destination.empty() ? dead.sources.contains(to) : task.destination == to))
        return true;
  }
  return false;
}

// Under which of its ids the message came, and whether it can have that id.
std::size_t Auditor::life_of(Call& call, Message& message, const ReceivedMessage& received,
                             const std::string& name) {
  const MessageId id = received.content->id();
  const Instant sent = received.content->sent();
  Life& first = message.lives.front();
  // It may have become a dead letter again before anybody saw it where it was brought.
  const auto back_from = parse_queue_arn(received.content->source_arn());
  const std::string& landed = back_from ? back_from->name : name;
  // The first that is heard of a send in doubt, unless a move task was quicker. If another send may
  // have been dropped as its repetition, the id that this one had at first is that other's.
  // Only as a dead letter a message gets another deduplication id.
  const bool was_dead =
      message.fifo && received.content->deduplication_id() != message.deduplication_id;
  const bool brought_here = landed != first.home || (!back_from && was_dead) ||
                            (message.twins && can_be_brought(first.home, landed));
  if (!first.id && message.lives.size() == 1 && first.deliveries.empty() && !brought_here &&
      sent <= message.op->hi && sent >= message.op->lo)
    first.id = id;
  for (std::size_t i = 0; i < message.lives.size(); ++i) {
    Life& life = message.lives[i];
    if (life.id != id) continue;
    if (i == 0 && !message.twins && (sent < message.op->lo || sent > message.op->hi))
      broken("A1", fmt::format("{} says that it was sent at {}, which is not when it was",
                               message.body, to_millis(sent)));
    if (life.sent && *life.sent != sent)
      broken("A1",
             fmt::format("{} says at each receive that it was sent at another time", message.body));
    life.sent = sent;
    if (i + 1 < message.lives.size() && call.op->from > message.life().first_seen)
      broken("A7", fmt::format("{} is still there under its old id after it was brought back{}",
                               message.body, story_of(message)));
    return i;
  }
  const Life& last = message.life();
  // Shards agree about the order of instants, whatever happens to the wall clock.
  if (last.sent && sent + skew_ < *last.sent) {
    if (call.op->from > last.first_seen)
      broken("A7", fmt::format("{} is there under two ids{}", message.body, story_of(message)));
    return kNoLife;
  }
  if (!can_be_brought(last.home, landed))
    broken("A7", fmt::format("{} has another id in {} though nothing can have brought it there{}",
                             message.body, name, story_of(message)));
  ++statistics_.redrives;
  Life next;
  next.id = id;
  next.sent = sent;
  next.home = landed;
  if (!back_from) next.seq = received.sequence_number;
  next.first_seen = call.op->to;
  message.lives.push_back(std::move(next));
  return message.lives.size() - 1;
}

void Auditor::check_place(const Call& call, Message& message, Life& life,
                          const ReceivedMessage& received, const std::string& name) {
  const std::string_view arn = received.content->source_arn();
  const auto source = parse_queue_arn(arn);
  if (arn.empty() || life.dead_letter) {
    const bool here = name == life.home && arn.empty() != life.dead_letter;
    // An answer that was under way while the message had already moved on.
    const bool late = life.dead_letter && arn.empty() && call.op->from < life.first_seen;
    if (!here && !late)
      broken("A7", fmt::format("{} is in {}, where nothing can have brought it{}", message.body,
                               name, story_of(message)));
    if (late) return;
  } else {
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
    if (source && source->name == life.home)
      queue(life.home).redrive.possible(message.op->from, call.op->to,
                                        [&](const std::optional<Redrive>& redrive) {
                                          if (redrive && redrive->target == name)
                                            least = std::min(least, redrive->max_receive_count);
                                        });
    if (received.receive_count <= least)
      broken("A7", fmt::format("{} is a dead letter in {} and should not be{}", message.body, name,
                               story_of(message)));
    ++statistics_.dead_letters;
    life.home = name;
    life.seq = received.sequence_number;
    life.dead_letter = true;
    life.first_seen = call.op->to;
  }
  if (life.first_seen == kOpen) life.first_seen = call.op->to;
  if (!life.seq) life.seq = received.sequence_number;
  if (life.seq != received.sequence_number)
    broken("A4", fmt::format("{} has another sequence number than before", message.body));
}

void Auditor::check_count(const Call& call, const Message& message, const Life& life,
                          const Delivery& delivery) {
  const auto known = static_cast<std::uint32_t>(life.deliveries.size());
  const std::uint32_t unknown = unknown_receives(message, call.op.get());
  if (delivery.count > known + unknown + 1)
    broken("A7", fmt::format("{} was received {} times, says the server; {} receives are known of "
                             "and {} can have been{}",
                             message.body, delivery.count, known + 1, unknown, story_of(message)));
  // If there was a dead-letter queue all the time, no message is handed out too often, but for the
  // time when the disk was full: then it cannot get there.
  if (full_now_ || delivery.taken_from < full_last_) return;
  bool always = true;
  std::uint32_t most = 0;
  std::string target;
  queue(delivery.queue)
      .redrive.possible(delivery.taken_from, call.op->to, [&](const auto& redrive) {
        always &= redrive.has_value() && (target.empty() || target == redrive->target);
        if (!redrive) return;
        most = std::max(most, redrive->max_receive_count);
        target = redrive->target;
      });
  if (!always || delivery.count <= most) return;
  queue(target).exists.possible(message.op->from, call.op->to, [&](bool e) { always &= e; });
  if (always && !life.dead_letter)
    broken("A7", fmt::format("{} is handed out for the {}th time; after {} it should be in {}{}",
                             message.body, delivery.count, most, target, story_of(message)));
}

void Auditor::check_timing(const Call& call, const Message& message, const Life& life,
                           const Delivery& delivery) const {
  for (const Delivery& other : life.deliveries) {
    const Delivery& earlier = other.count < delivery.count ? other : delivery;
    const Delivery& later = other.count < delivery.count ? delivery : other;
    if (later.hi < until_min(earlier))
      broken("A3", fmt::format("{} was handed out again, as receive {}, inside the visibility "
                               "timeout of receive {}{}",
                               message.body, later.count, earlier.count, story_of(message)));
  }
  const Queue& home = queues_.at(delivery.queue);
  if (message.lives.size() == 1 && !life.dead_letter && delivery.count == 1) {
    std::int64_t delay = limits::kDelaySecondsMax;
    if (!message.fifo && message.sent.delay_seconds) {
      delay = *message.sent.delay_seconds;
    } else {
      home.delay.possible(message.op->from, message.fifo ? call.op->to : message.op->to,
                          [&](std::int64_t d) { delay = std::min(delay, d); });
    }
    if (delivery.hi < *life.sent + seconds(delay))
      broken("A3", fmt::format("{} was handed out before its delay of {} s was over", message.body,
                               delay));
  }
  // The retention of a FIFO dead letter begins when it arrives in its new queue.
  if (message.fifo && life.dead_letter) return;
  std::int64_t longest = 0;
  home.retention.possible(call.op->from, call.op->to,
                          [&](std::int64_t r) { longest = std::max(longest, r); });
  if (delivery.lo >= *life.sent + seconds(longest))
    broken("A1", fmt::format("{} was handed out after it had expired{}", message.body,
                             story_of(message)));
}

void Auditor::check_order(const Call& call, const Message& message, const Delivery& delivery,
                          const std::vector<std::size_t>& before) {
  const Seq seq = *message.life().seq;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& other = messages_[i];
    if (&other == &message || other.gone || !other.fifo || other.life().home != delivery.queue ||
        other.group() != message.group() || !other.life().seq ||
        std::ranges::find(before, i) != before.end())
      continue;
    if (!surely_in(other, delivery.queue, call.op.get())) continue;
    if (*other.life().seq < seq)
      broken("A4", fmt::format("{} overtook {} in its group{}{}", message.body, other.body,
                               story_of(other), story_of(message)));
  }
}

// By the numbers in the answer itself: while it was on its way, a message may have been moved and
// received again, and the answer that shows its new number may have come first.
void Auditor::check_order_within(const ReceiveMessageResult& result) const {
  std::map<std::string_view, const ReceivedMessage*> last;  // By group.
  for (const ReceivedMessage& message : result.messages) {
    if (!message.sequence_number) continue;
    const ReceivedMessage*& before = last[message.content->group()];
    if (before != nullptr && !(*before->sequence_number < *message.sequence_number))
      broken("A4", fmt::format("{} and {} are in the wrong order in one answer",
                               before->content->body(), message.content->body()));
    before = &message;
  }
}

// A receive looks so far, and no further, beyond dead letters that may not leave while too many others
// are on their way. It waits a second for them, at least.
bool Auditor::may_wait_for_dead_letters(const Call& call, const Queue& target) const {
  if (world_.now() - call.began < kSecond) return false;
  const auto dead = static_cast<std::size_t>(std::ranges::count_if(messages_, [&](const auto& m) {
    return possibly_in(m, target.name) && may_have_left(m, call.op.get());
  }));
  return 2 * dead >=
         decision_messages_;  // One look for each, and one for the tenant it belongs to.
}

// An empty answer is a claim, too: that nothing could be received until the wait was over.
void Auditor::check_empty(const Call& call, const ReceiveMessage& r) {
  const Queue& target = queue(r.queue.name);
  // One that waits for dead letters to leave gives up after a while, which a machine that is
  // suspended uses up.
  if (call.impaired || !target.receives.empty() || waited_through_a_jump(call)) return;
  if (may_wait_for_dead_letters(call, target)) return;
  const std::int64_t wait = r.wait_time_seconds.value_or(0);
  // The receive waited by the steady clock, while time perhaps ran slower, for all of the wait or
  // for a part of it: as much as is missing now was missing when the wait was over, within what the
  // answer's way adds.
  constexpr Duration kWay(3);
  const auto steady = std::chrono::floor<Duration>(world_.steady() - call.began_steady);
  const Duration missing = steady - (world_.clock() - call.op->lo);
  const Duration slowed = missing > Duration(0) ? missing + kWay : Duration(0);
  const Instant deadline = call.op->lo + std::max(Duration(seconds(wait)) - slowed, Duration(0));
  for (const Message& message : messages_)
    if (surely_receivable(call, message, deadline, false))
      broken("A9", fmt::format("a receive from {} that waited {} s came back empty though {} was "
                               "there{}",
                               target.name, wait, message.body, story_of(message)));
}

// Whether the message was visible at `deadline`, in the queue in which it was last seen, if it was
// in it.
bool Auditor::surely_ready(const Call& call, const Message& message, Instant deadline) const {
  if (message.op->hi >= deadline && !(message.op->to < call.op->from)) return false;
  std::int64_t delay = 0;
  queues_.at(message.life().home)
      .delay.possible(message.op->from, call.op->to,
                      [&](std::int64_t d) { delay = std::max(delay, d); });
  if (!message.fifo) delay = std::max(delay, message.sent.delay_seconds.value_or(0));
  if (sent_hi(message) + seconds(delay) >= deadline) return false;
  return std::ranges::all_of(message.life().deliveries,
                             [&](const Delivery& d) { return until_max(d) < deadline; });
}

// Whether a receive that ended at `deadline` could have got the message from the queue that it
// asked; `alone`: without earlier messages of the same group.
bool Auditor::surely_receivable(const Call& call, const Message& message, Instant deadline,
                                bool alone) const {
  const std::string& name = std::get<ReceiveMessage>(call.request).queue.name;
  if (message.gone || message.life().home != name) return false;
  if (!surely_in(message, name, nullptr) || !surely_ready(call, message, deadline)) return false;
  if (message.lives.size() > 1 || message.life().dead_letter) return false;
  // Later messages of the group do not block it.
  const auto may_be_earlier = [&](const Message& other) {
    const auto& mine = message.life().seq;
    const auto& its = other.life().seq;
    return !mine || !its || other.life().home != name || *its < *mine;
  };
  const auto may_be_in_the_way = [&](const Message& other) {
    if (&other == &message || other.group() != message.group() || !may_be_earlier(other) ||
        !possibly_in(other, name) || (other.gone && *other.gone < call.op->from))
      return false;
    return alone || !surely_in(other, name, nullptr) || !surely_ready(call, other, deadline);
  };
  const bool blocked = message.fifo && std::ranges::any_of(messages_, may_be_in_the_way);
  // The answer to its receive may have been lost while the group was locked.
  return !blocked && unknown_receives(message, nullptr) == 0;
}

void Auditor::check_patience(const Call& call) const {
  if (call.impaired) return;
  const Micros waited = world_.now() - call.began;
  const auto* receive = std::get_if<ReceiveMessage>(&call.request);
  const std::int64_t wait = receive == nullptr ? 0 : receive->wait_time_seconds.value_or(0);
  if (waited > wait * kSecond + kPatience)
    broken("A9", fmt::format("{} that may wait {} s was answered after {} s",
                             describe(call.request), wait, waited / kSecond));
}

// The message may have been taken by a try of the same attempt whose answer was lost, and a change
// under way may have altered when it is visible again.
void Auditor::note_other_tries(const Call& call, const ReceiveMessage& r,
                               Delivery& delivery) const {
  if (!r.attempt_id) return;
  for (const Try& other : tries_.at(attempt_key(r))) {
    if (other.op == call.op || !other.op->may_have_happened() || other.op->done()) continue;
    delivery.taken_from = std::min(delivery.taken_from, other.op->from);
    delivery.taken_lo = std::min(delivery.taken_lo, other.op->lo);
    if (!other.op->before(*call.op)) delivery.changes.push_back({other.op, other.visibility});
  }
}

// A repeated attempt gets the same messages as before, as long as nobody touched them.
void Auditor::check_attempt(const Call& call, const ReceiveMessage& r,
                            const ReceiveMessageResult& result) {
  if (!r.attempt_id) return;
  std::vector<std::string> handles;
  for (const ReceivedMessage& m : result.messages) handles.push_back(m.receipt_handle);
  const std::string key = attempt_key(r);
  const auto found = attempts_.find(key);
  if (found != attempts_.end() && found->second.op->before(*call.op) &&
      call.op->hi < found->second.op->lo + limits::kReceiveAttemptWindow) {
    const bool untouched = std::ranges::all_of(found->second.handles, [&](const auto& handle) {
      const HandleOf at = by_handle_.at(handle);
      const Message& message = messages_[at.message];
      const Delivery& delivery = message.lives[at.life].deliveries[at.delivery];
      const bool changed = std::ranges::any_of(
          delivery.changes, [](const Change& change) { return change.op->may_have_happened(); });
      return !changed && surely_in(message, r.queue.name, nullptr) &&
             receipt_surely_valid(message, at.life, delivery, *call.op);
    });
    if (untouched && handles != found->second.handles)
      broken("A3", fmt::format("a repeated receive attempt on {} got other messages than before",
                               r.queue.name));
  }
  attempts_[key] = {call.op, std::move(handles)};
}

}  // namespace stanchion::sim

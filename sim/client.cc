#include "sim/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.h"
#include "base/text.h"

namespace stanchion::sim {
namespace {

constexpr std::size_t kReceiptsKept = 40;
constexpr std::size_t kIdsKept = 12;
constexpr std::size_t kSightingsKept = 100;
constexpr std::size_t kChoiceMax = 5;

template <class T>
void keep(std::deque<T>& line, T value, std::size_t most) {
  line.push_back(std::move(value));
  if (line.size() > most) line.pop_front();
}

}  // namespace

Client::Client(World& world, Service& service, const Plan& plan, Crowd& crowd, int number)
    : world_(world),
      service_(service),
      plan_(plan),
      crowd_(crowd),
      name_(fmt::format("client-{}", number)),
      random_(world.random().fork()) {}

void Client::begin() {
  ++crowd_.busy;
  think();
}

void Client::think(Micros at_least) {
  const Micros pause =
      plan_.think_time == 0
          ? 0
          : static_cast<Micros>(random_.below(static_cast<std::uint64_t>(plan_.think_time) * 2));
  world_.schedule(at_least + pause + 1, kWorldOwner, [this] { act(); });
}

void Client::act() {
  if (crowd_.requests_left == 0) {
    --crowd_.busy;
    return;
  }
  --crowd_.requests_left;
  if (again_) {
    Request request = std::move(*again_);
    again_.reset();
    return make(std::move(request));
  }
  std::uint64_t dice = random_.below(100);
  const auto within = [&](unsigned percent) {
    if (dice < percent) return true;
    dice -= percent;
    return false;
  };
  if (within(plan_.wipes)) return make(wipe());
  if (within(plan_.settings)) return make(change_settings());
  if (within(plan_.moves)) return make(move_messages());
  if (within(5)) return make(look_around());
  if (within(3)) return make(choose());
  if (within(5)) return make(change_visibility());
  if (within(20)) return make(send());
  if (within(8)) return make(send_batch());
  if (within(30)) return make(receive());
  make(settle_receipts());
}

void Client::make(Request request) {
  ++crowd_.requests_made;
  const bool receives = std::holds_alternative<ReceiveMessage>(request);
  Request copy = request;
  const CallNo call =
      service_.call(std::move(request),
                    [this, copy = std::move(copy)](const Reply* reply) { answered(copy, reply); });
  if (receives && random_.chance(plan_.vanishing)) {
    world_.schedule(static_cast<Micros>(random_.below(3'000)) * kMillisecond, kWorldOwner,
                    [this, call] {
                      if (service_.vanish(call)) think();
                    });
  }
}

void Client::answered(const Request& request, const Reply* reply) {
  if (reply == nullptr) {
    if (random_.chance(60)) retry(request);
    return think(static_cast<Micros>(random_.below(500)) * kMillisecond);
  }
  if (const auto* receive = std::get_if<ReceiveMessage>(&request); receive != nullptr && *reply)
    remember(*receive, std::get<ReceiveMessageResult>(**reply));
  if (const auto* look = std::get_if<StanchionPeek>(&request); look != nullptr && *reply)
    remember(*look, std::get<StanchionPeekResult>(**reply));
  if (*reply)
    if (const auto* started = std::get_if<StartMessageMoveTaskResult>(&**reply))
      tasks_.push_back(started->task_handle);
  const bool gone = !*reply && reply->error().code == ErrorCode::kQueueDoesNotExist;
  if (gone && !plan_.apart && random_.chance(70)) again_ = create(some_queue());
  think();
}

void Client::remember(const ReceiveMessage& request, const ReceiveMessageResult& result) {
  for (const ReceivedMessage& message : result.messages)
    keep(receipts_, {request.queue.name, message.receipt_handle}, kReceiptsKept);
}

void Client::remember(const StanchionPeek& request, const StanchionPeekResult& result) {
  pages_[request.queue.name] = result.next_token;
  for (const PeekedMessage& message : result.messages)
    keep(sightings_, {request.queue.name, message.position}, kSightingsKept);
}

// Each body is sent only once, so that every message can be recognised; the deduplication id makes
// a send a repetition.
void Client::retry(const Request& request) {
  if (const auto* send = std::get_if<SendMessage>(&request)) {
    if (!is_fifo_name(send->queue.name)) return;
    SendMessage repeated = *send;
    if (!repeated.message.deduplication_id)
      repeated.message.deduplication_id = to_hex(as_text(sha256(*repeated.message.body)));
    repeated.message.body = fmt::format("m{}.again", crowd_.next_message++);
    again_ = repeated;
  } else if (!std::holds_alternative<SendMessageBatch>(request)) {
    again_ = request;
  }
}

const QueuePlan& Client::some_queue() {
  // Dead-letter queues come first in the plan and are visited less often.
  const auto dead = static_cast<std::size_t>(std::ranges::count_if(
      plan_.queues, [](const QueuePlan& queue) { return queue.name.starts_with("dead"); }));
  const std::size_t first = random_.chance(20) || dead == plan_.queues.size() ? 0 : dead;
  return plan_.queues[random_.between(first, plan_.queues.size() - 1)];
}

OutgoingMessage Client::message_for(const QueuePlan& queue) {
  OutgoingMessage message;
  message.body = fmt::format("m{}.", crowd_.next_message++);
  message.body->append(random_.below(random_.chance(5) ? 2'000 : 60), 'x');
  const bool fifo = is_fifo_name(queue.name);
  if (!fifo && random_.chance(10)) message.delay_seconds = random_.between<std::int64_t>(0, 5);
  for (std::uint64_t i = random_.chance(30) ? random_.between<std::uint64_t>(1, 3) : 0; i > 0;
       --i) {
    MessageAttribute& attribute = message.attributes.emplace_back();
    attribute.name = fmt::format("name-{}", i);
    const bool binary = random_.chance(30);
    attribute.data_type = binary ? "Binary" : random_.chance(50) ? "Number.int" : "String";
    (binary ? attribute.binary_value : attribute.string_value) =
        fmt::to_string(random_.below(1'000'000));
  }
  if (random_.chance(10))
    message.system_attributes.push_back({"AWSTraceHeader", "String",
                                         fmt::format("Root=1-{}", random_.below(1000)),
                                         std::nullopt, false});
  if (fifo || (queue.tenants && random_.chance(90)))
    message.group_id = fmt::format("g{}", random_.below(3));
  if (!fifo) return message;
  auto& used = deduplication_ids_[queue.name];
  if (!used.empty() && random_.chance(plan_.repeats)) {
    message.deduplication_id = used[static_cast<std::size_t>(random_.below(used.size()))];
  } else if (queue.content_based && random_.chance(50)) {
    // The server derives the id from the body; a send that gives it explicitly later repeats this
    // message.
    keep(used, to_hex(as_text(sha256(*message.body))), kIdsKept);
    return message;
  } else {
    message.deduplication_id = fmt::format("d{}", crowd_.next_message);
  }
  keep(used, *message.deduplication_id, kIdsKept);
  return message;
}

Request Client::send() {
  const QueuePlan& queue = some_queue();
  return SendMessage{ref_of(queue.name), name_, message_for(queue)};
}

Request Client::send_batch() {
  const QueuePlan& queue = some_queue();
  SendMessageBatch batch{ref_of(queue.name), name_, {}};
  const int count = random_.between(1, 10);
  for (int i = 0; i < count; ++i)
    batch.entries.push_back({fmt::format("e{}", i), message_for(queue)});
  return batch;
}

Request Client::receive() {
  const QueuePlan& queue = some_queue();
  ReceiveMessage receive;
  receive.queue = ref_of(queue.name);
  receive.attribute_names = {"All"};
  receive.message_attribute_names = {"All"};
  receive.max_number_of_messages = random_.chance(50) ? 1 : random_.between<std::int64_t>(1, 10);
  if (random_.chance(70))
    receive.visibility_timeout = random_.pick<std::int64_t>({0, 1, 2, 5, 10, 30, 30, 120, 43'200});
  if (random_.chance(plan_.long_polls))
    receive.wait_time_seconds = random_.pick<std::int64_t>({1, 2, 5, 20});
  if (is_fifo_name(queue.name) && random_.chance(plan_.attempts)) {
    auto& used = attempt_ids_[queue.name];
    if (!used.empty() && random_.chance(plan_.repeated_attempts)) {
      receive.attempt_id = used.back();
    } else {
      receive.attempt_id = fmt::format("{}-attempt-{}", name_, crowd_.next_message++);
      keep(used, *receive.attempt_id, 4);
    }
  }
  return receive;
}

std::optional<Client::Receipt> Client::take_receipt(bool keep_it) {
  if (receipts_.empty()) return std::nullopt;
  const auto at = receipts_.begin() + static_cast<std::ptrdiff_t>(random_.below(receipts_.size()));
  const Receipt receipt = *at;
  if (!keep_it) receipts_.erase(at);
  return receipt;
}

Request Client::settle_receipts() {
  const auto first = take_receipt(random_.chance(5));
  if (!first) return receive();
  if (random_.chance(50)) return DeleteMessage{ref_of(first->queue), first->handle};
  DeleteMessageBatch batch{ref_of(first->queue), {{"first", first->handle}}};
  for (auto it = receipts_.begin(); it != receipts_.end() && batch.entries.size() < 10;) {
    if (it->queue != first->queue || it->handle == first->handle) {
      ++it;
      continue;
    }
    batch.entries.push_back({fmt::format("e{}", batch.entries.size()), it->handle});
    it = receipts_.erase(it);
  }
  return batch;
}

Request Client::change_visibility() {
  const auto receipt = take_receipt(true);
  if (!receipt) return receive();
  const std::int64_t timeout = random_.pick<std::int64_t>({0, 0, 1, 5, 60});
  if (random_.chance(70))
    return ChangeMessageVisibility{ref_of(receipt->queue), receipt->handle, timeout};
  ChangeMessageVisibilityBatch batch{ref_of(receipt->queue), {}};
  batch.entries.push_back({"only", receipt->handle, timeout});
  return batch;
}

Request Client::wipe() {
  const QueuePlan& queue = some_queue();
  if (random_.chance(50)) return PurgeQueue{ref_of(queue.name)};
  // The queue is used again right after.
  again_ = create(queue);
  return DeleteQueue{ref_of(queue.name)};
}

Request Client::create(const QueuePlan& queue) {
  return CreateQueue{ref_of(queue.name), queue.attributes, {}};
}

Request Client::change_settings() {
  const QueuePlan& queue = some_queue();
  SetQueueAttributes set{ref_of(queue.name), {}};
  switch (random_.below(4)) {
    case 0:
      set.attributes["VisibilityTimeout"] = fmt::to_string(random_.pick<int>({0, 1, 5, 30}));
      break;
    case 1:
      set.attributes["DelaySeconds"] = fmt::to_string(random_.pick<int>({0, 0, 1, 3}));
      break;
    case 2:
      set.attributes["MessageRetentionPeriod"] =
          fmt::to_string(random_.pick<int>({60, 120, 345'600, 1'209'600}));
      break;
    default:
      if (queue.dead_letter_queue.empty() || random_.chance(30)) {
        set.attributes["RedrivePolicy"] = "";
      } else {
        set.attributes["RedrivePolicy"] =
            redrive_policy(queue.dead_letter_queue, random_.between<std::uint64_t>(1, 3));
      }
  }
  return set;
}

Request Client::move_messages() {
  const bool fifo = random_.chance(50);
  const std::string source = ref_of(fifo ? "dead.fifo" : "dead").arn();
  if (!tasks_.empty() && random_.chance(10)) return CancelMessageMoveTask{tasks_.back()};
  if (random_.chance(20)) return ListMessageMoveTasks{source, 10};
  StartMessageMoveTask start;
  start.source_arn = source;
  if (random_.chance(40))
    start.destination_arn = ref_of(fifo ? random_.chance(50) ? "steps.fifo" : "lanes.fifo"
                                   : random_.chance(50) ? "orders"
                                                        : "tenants")
                                .arn();
  if (random_.chance(40)) start.max_messages_per_second = random_.pick<std::int64_t>({1, 5, 100});
  return start;
}

Request Client::look_around() {
  const QueuePlan& queue = some_queue();
  switch (random_.below(9)) {
    case 5:
    case 6:
      return StanchionPeek{ref_of(queue.name), {}, {}, {}, 100, {}};
    case 7:
      return StanchionPeek{ref_of(queue.name), {}, {}, {}, random_.between<std::int64_t>(1, 4),
                           pages_[queue.name]};
    case 8:
      return StanchionPeek{
          ref_of(queue.name), {random_.chance(50) ? "InFlight" : "Delayed"}, {}, {}, 100, {}};
    case 0:
      return ListQueues{ref_of("").account, ref_of("").region, "", std::nullopt, std::nullopt};
    case 1:
      return GetQueueUrl{ref_of(queue.name)};
    case 2:
      return ListDeadLetterSourceQueues{ref_of("dead"), std::nullopt, std::nullopt};
    default:
      return GetQueueAttributes{ref_of(queue.name), {"All"}};
  }
}

// Receives a few messages of a queue that this client has seen there, some time ago or just now.
Request Client::choose() {
  if (sightings_.empty()) return look_around();
  const std::string queue = sightings_[random_.below(sightings_.size())].queue;
  ReceiveMessage receive;
  receive.queue = ref_of(queue);
  receive.attribute_names = {"All"};
  receive.message_attribute_names = {"All"};
  if (random_.chance(70)) receive.visibility_timeout = random_.pick<std::int64_t>({0, 1, 5, 30});
  const std::uint64_t tries = random_.between<std::uint64_t>(1, kChoiceMax);
  const std::size_t reach = std::min<std::size_t>(sightings_.size(), random_.chance(50) ? 10 : 100);
  for (std::uint64_t i = 0; i < tries; ++i) {
    const Sighting& seen = sightings_[sightings_.size() - 1 - random_.below(reach)];
    if (seen.queue == queue) receive.positions.push_back(seen.position);
  }
  if (receive.positions.empty()) return look_around();
  return receive;
}

}  // namespace stanchion::sim

// The player looks at queues, and nothing may come of it.
#include <fmt/format.h>

#include "tests/model/player.h"

namespace stanchion::reference {
namespace {

StanchionPeek request_of(const Operation& operation) {
  StanchionPeek request;
  request.queue = ref_of(operation.queue);
  request.max_results = operation.most;
  switch (operation.amount) {
    case 1:
      request.states = {"Visible"};
      break;
    case 2:
      request.states = {"Delayed", "InFlight"};
      break;
    case 3:
      request.states = {"InFlight"};
      break;
    case 4:
      request.search = "y-1";
      break;
    case 5:
      request.group_id = "g1";
      break;
    default:
      break;
  }
  return request;
}

}  // namespace

// Executes a request that only looks.
Reply Player::look(const Request& request) {
  const std::uint64_t before = fingerprint();
  const std::size_t records = records_.size();
  Reply reply = execute(request);
  require(records_.size() == records, "a look was recorded");
  require(fingerprint() == before, "a look changed something");
  if (const engine::Queue* queue = engine_->find(*engine::home_of(request));
      queue != nullptr && draws_ % 2 == 0)
    engine_->forget_peeked(queue->id);
  return reply;
}

void Player::peek(const Operation& operation) {
  StanchionPeek request = request_of(operation);
  const Queue* queue = model_.find(request.queue.name);
  std::vector<PeekedMessage> seen;
  do {
    const Reply reply = look(request);
    require(reply.has_value() == (queue != nullptr), "a peek is refused");
    if (!reply) return;
    const auto& page = std::get<StanchionPeekResult>(*reply);
    require(page.messages.size() <= static_cast<std::size_t>(operation.most.value_or(10)),
            "a page is too long");
    seen.insert(seen.end(), page.messages.begin(), page.messages.end());
    request.next_token = page.next_token;
  } while (request.next_token);
  const std::vector<std::uint64_t> places = check_whole_peek(*queue, request, seen);
  for (std::size_t i = 0; i < seen.size(); ++i)
    sightings_.push_back({seen[i].position, queue->name, queue->number, places[i]});
  const Reply groups = look(StanchionGroups{request.queue, 1000, {}});
  require(groups.has_value(), "the groups cannot be seen");
  check_groups(*queue, model_.passages(), std::get<StanchionGroupsResult>(*groups).groups);
}

// One more page of a walk that began some operations ago.
void Player::peek_page(const Operation& operation) {
  const QueueRef ref = ref_of(operation.queue);
  const Queue* queue = model_.find(ref.name);
  auto walk = walks_.find(ref.name);
  if (queue == nullptr) return;
  if (walk != walks_.end() && walk->second.queue_number() != queue->number) {
    // The token is of another queue.
    const Reply refused = look(StanchionPeek{ref, {}, {}, {}, 1, walk->second.token()});
    require(!refused && refused.error().code == ErrorCode::kInvalidParameterValue,
            "a token of a deleted queue is accepted");
    walks_.erase(walk);
    walk = walks_.end();
  }
  if (walk == walks_.end()) walk = walks_.emplace(ref.name, PeekWalk(*queue)).first;
  walk->second.look(*queue);
  const Reply reply =
      look(StanchionPeek{ref, {}, {}, {}, operation.most.value_or(2), walk->second.token()});
  require(reply.has_value(), "a page of a peek is refused");
  walk->second.take(std::get<StanchionPeekResult>(*reply));
  if (walk->second.token()) return;
  walk->second.check_end(*queue);
  walks_.erase(walk);
}

Sighting Player::sighting_of(const Operation& operation, const Pick& pick) const {
  const std::string_view name = kQueueNames[static_cast<std::size_t>(operation.queue)];
  int back = pick.back;
  for (auto seen = sightings_.rbegin(); seen != sightings_.rend(); ++seen) {
    if (pick.kind != Pick::Kind::kAny && seen->queue_name != name) continue;
    if (back-- > 0) continue;
    Sighting sighting = *seen;
    if (pick.kind != Pick::Kind::kForged) return sighting;
    sighting.position[10] = sighting.position[10] == 'A' ? 'B' : 'A';
    sighting.queue = 0;
    return sighting;
  }
  return {"never shown", "", 0, 0};
}

void Player::choose(const Operation& operation) {
  ReceiveMessage request;
  request.queue = ref_of(operation.queue);
  request.visibility_timeout = operation.visibility;
  std::vector<Sighting> chosen;
  for (const Pick& pick : operation.picks) {
    chosen.push_back(pick.kind == Pick::Kind::kGarbage ? Sighting{"garbage", "", 0, 0}
                                                       : sighting_of(operation, pick));
    request.positions.push_back(chosen.back().position);
  }
  const TransferNo next = model_.next_transfer();
  const Reply reply = execute(request);
  model_.receive_chosen(request, chosen, reply, engine_->transfers_from(next));
}

}  // namespace stanchion::reference

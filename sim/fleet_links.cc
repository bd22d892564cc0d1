#include "sim/fleet_links.h"

#include <algorithm>

#include "base/check.h"
#include "link/frame_codec.h"

namespace stanchion::sim {
namespace {

// How long it takes at most until a node notices that another one does not answer.
constexpr Micros kNoticedAfterMax = 1'500 * kMillisecond;

// As the bytes that real nodes send.
fleet::Frame as_received(const fleet::Frame& frame) {
  std::string bytes;
  CHECK(link::encode_frame(frame, bytes), "frames of the simulation are small");
  auto received = link::decode_frame(std::string_view(bytes).substr(link::kFrameHeadSize));
  CHECK(received.has_value(), "a frame can be read as it was written");
  return std::move(*received);
}

}  // namespace

Status SimControlLog::read(const std::function<void(const fleet::ControlRecord&)>& visit) {
  if (const auto beat = std::exchange(unread_, std::nullopt)) visit(*beat);
  if (world_.now() < uplink_.cut_until) {
    arrive(way());
    return {};
  }
  if (trouble_.control_again > 0 && troubled_.below(1000) < trouble_.control_again) {
    read_ = 0;
    caught_up_at_ = records_.size();  // Nobody acts upon half of it.
  }
  // So many at a time, if it matters.
  std::uint64_t most =
      trouble_.control_again > 0 ? troubled_.between<std::uint64_t>(1, 300) : records_.size() + 1;
  for (; read_ < records_.size() && most > 0; ++read_) {
    const auto& record = records_.at(read_);
    if (!record) continue;
    visit(*record);
    --most;
  }
  if (read_ < records_.size()) arrive(way());
  return {};
}

void SimControlLog::append(fleet::ControlRecord record) {
  // Broken on purpose: the node has its beat back before it has read what stands before it.
  if (!rules_.rereads_beats && std::holds_alternative<fleet::Beat>(record)) {
    unread_ = record;
    arrive(1);
  }
  const auto happens = [&](unsigned percent) { return percent > 0 && troubled_.chance(percent); };
  if (happens(trouble_.control_lost)) return;
  const auto add = [&](Micros after) {
    world_.schedule(after, kWorldOwner, [&records = records_, record] { records.append(record); });
  };
  // By a client that was replaced: what is sent by the next one is there before.
  if (happens(trouble_.control_late))
    return add(way() + troubled_.between<Micros>(1, 8000) * kMillisecond);
  arrives_at_ = std::max(arrives_at_ + 1, world_.now() + way());
  add(arrives_at_ - world_.now());
  if (happens(trouble_.control_doubled))
    add(arrives_at_ - world_.now() + troubled_.between<Micros>(1, 2000) * kMillisecond);
}

void Network::listen(const fleet::NodeName& name, End end) {
  ends_[name] = std::move(end);
  for (const auto& [other, its] : ends_) {
    if (other == name) continue;
    links_[{name, other}].known_cut = true;  // If there is a cut now, it has no connection yet.
    if (its.owner != kWorldOwner)
      world_.schedule(random_.between<Micros>(1, 50) * kMillisecond, its.owner,
                      [made = its.made] { made(); });
  }
}

void Network::hang_up(const fleet::NodeName& name) {
  ends_[name] = {};
  for (const auto& [other, its] : ends_) {
    if (other == name) continue;
    ++links_[{name, other}].connection;
    ++links_[{other, name}].connection;
    tell_broken(other, name, random_.between<Micros>(1, 5) * kMillisecond);
  }
}

void Network::tell_broken(const fleet::NodeName& side, const fleet::NodeName& other, Micros after) {
  const End& end = ends_[side];
  if (end.owner == kWorldOwner) return;
  world_.schedule(after, end.owner, [this, side, other, broke = end.broke] {
    links_[{side, other}].known_cut = true;
    broke(other);
  });
}

bool Network::is_cut(const fleet::NodeName& name) const {
  const auto found = cut_until_.find(name);
  return found != cut_until_.end() && world_.now() < found->second;
}

void Network::cut_link(const fleet::NodeName& from, const fleet::NodeName& to, Micros known_after) {
  Link& link = links_[{from, to}];
  ++link.connection;
  link.known_cut &= are_apart(from, to);
  tell_broken(from, to, known_after);
}

void Network::cut(const fleet::NodeName& name, Micros time) {
  Micros healed = time;
  for (const auto& [other, its] : ends_) {
    if (other == name) continue;
    const Micros here = random_.between<Micros>(1, kNoticedAfterMax);
    const Micros there = random_.between<Micros>(1, kNoticedAfterMax);
    cut_link(name, other, here);
    cut_link(other, name, there);
    healed = std::max({healed, here + 1, there + 1});
  }
  cut_until_[name] = world_.now() + healed;
  world_.schedule(healed, kWorldOwner, [this, name] {
    if (is_cut(name)) return;
    for (const auto& [other, its] : ends_)
      if (its.owner != kWorldOwner)
        world_.schedule(random_.between<Micros>(1, 50) * kMillisecond, its.owner,
                        [made = its.made] { made(); });
  });
}

bool Network::is_cut(const fleet::NodeName& one, const fleet::NodeName& other) const {
  const auto found = pairs_cut_until_.find(std::minmax(one, other));
  return found != pairs_cut_until_.end() && world_.now() < found->second;
}

void Network::cut(const fleet::NodeName& one, const fleet::NodeName& other, Micros time,
                  Random& random) {
  const Micros here = random.between<Micros>(1, kNoticedAfterMax);
  const Micros there = random.between<Micros>(1, kNoticedAfterMax);
  cut_link(one, other, here);
  cut_link(other, one, there);
  const Micros healed = std::max({time, here + 1, there + 1});
  pairs_cut_until_[std::minmax(one, other)] = world_.now() + healed;
  world_.schedule(healed, kWorldOwner, [this, one, other] {
    if (are_apart(one, other)) return;
    for (const End& end : {ends_[one], ends_[other]})
      if (end.owner != kWorldOwner)
        world_.schedule(20 * kMillisecond, end.owner, [made = end.made] { made(); });
  });
}

std::set<fleet::NodeName> Network::linked_with(const fleet::NodeName& name) {
  std::set<fleet::NodeName> linked;
  for (const auto& [other, its] : ends_)
    if (other != name && its.owner != kWorldOwner &&
        !(are_apart(name, other) && links_[{name, other}].known_cut))
      linked.insert(other);
  return linked;
}

bool Network::send(const fleet::NodeName& from, const fleet::NodeName& to,
                   const fleet::Frame& frame) {
  if (are_apart(from, to)) return !links_[{from, to}].known_cut;
  const auto end = ends_.find(to);
  if (end == ends_.end() || end->second.owner == kWorldOwner) return false;
  if (trouble_.verdicts_lost > 0 && std::holds_alternative<fleet::Verdict>(frame) &&
      troubled_.chance(trouble_.verdicts_lost))
    return true;
  if (!rules_.frames_once && std::holds_alternative<fleet::Forward>(frame) && random_.chance(5))
    pass(from, to, end->second, frame);
  pass(from, to, end->second, frame);
  return true;
}

void Network::pass(const fleet::NodeName& from, const fleet::NodeName& to, const End& end,
                   const fleet::Frame& frame) {
  Link& link = links_[{from, to}];
  link.arrives_at =
      std::max(link.arrives_at + 1, world_.now() + random_.between<Micros>(1, 2 * kMillisecond));
  world_.schedule(link.arrives_at - world_.now(), end.owner,
                  [this, from, to, connection = link.connection, take = end.take,
                   frame = as_received(frame)]() mutable {
                    if (links_[{from, to}].connection == connection) take(from, std::move(frame));
                  });
}

}  // namespace stanchion::sim

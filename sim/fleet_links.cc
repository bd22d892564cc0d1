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
  link.known_cut &= is_cut(from) || is_cut(to);
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

std::set<fleet::NodeName> Network::linked_with(const fleet::NodeName& name) {
  std::set<fleet::NodeName> linked;
  for (const auto& [other, its] : ends_)
    if (other != name && its.owner != kWorldOwner &&
        !((is_cut(name) || is_cut(other)) && links_[{name, other}].known_cut))
      linked.insert(other);
  return linked;
}

bool Network::send(const fleet::NodeName& from, const fleet::NodeName& to,
                   const fleet::Frame& frame) {
  if (is_cut(from) || is_cut(to)) return !links_[{from, to}].known_cut;
  const auto end = ends_.find(to);
  if (end == ends_.end() || end->second.owner == kWorldOwner) return false;
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

#include "engine/peek.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace stanchion::engine {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

}  // namespace

bool Peek::wants(State state) const {
  switch (state) {
    case State::kDelayed:
      return delayed;
    case State::kReady:
      return ready;
    case State::kInFlight:
      return in_flight;
  }
  check_failed("state", "no such state", std::source_location::current());
}

bool Peek::matches(const Content& content) {
  if (search.empty()) return true;
  searched -= std::min(searched, content.footprint());
  if (contains(content.body(), search) || contains(content.group(), search) ||
      contains(content.deduplication_id(), search) || content.id().text() == search)
    return true;
  // The section holds names, types and values, each in one piece: most messages do not even have
  // the text there.
  if (!contains(content.attribute_section(), search)) return false;
  return std::ranges::any_of(content.attributes(), [&](const AttributeView& attribute) {
    return contains(attribute.name, search) || contains(attribute.value, search);
  });
}

bool Peek::take(Sighting sighting) {
  const std::size_t size = sighting.content->footprint();
  if (found.size() >= messages_max || searched == 0) return false;
  const bool wanted = matches(*sighting.content);
  if (wanted && !found.empty() && size > bytes) return false;
  moved = true;
  at.after = sighting.seq;
  if (!wanted) return true;
  bytes -= std::min(bytes, size);
  found.push_back(std::move(sighting));
  return true;
}

}  // namespace stanchion::engine

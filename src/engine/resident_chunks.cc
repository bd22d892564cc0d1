#include "engine/resident_chunks.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace stanchion::engine {

Chunk* ResidentChunks::deep_before(Chunk& chunk) {
  const auto at = deep_.iterator_to(chunk);
  return at == deep_.begin() ? nullptr : &*std::prev(at);
}

Chunk* ResidentChunks::near_behind(Chunk& chunk) {
  const auto behind = std::next(near_.iterator_to(chunk));
  return behind == near_.end() ? nullptr : &*behind;
}

void ResidentChunks::add(Chunk& chunk) {
  CHECK(!chunk.is_cold(), "RT1: the members of a resident chunk are in memory");
  (chunk.deep ? deep_ : near_).push_back(chunk);
  // A chunk that is read after all others were examined may be evicted again before the next
  // checkpoint.
  if (!chunk.deep && next_near_.chunk == nullptr) next_near_.chunk = &chunk;
}

void ResidentChunks::remove(Chunk& chunk) {
  if (next_deep_.chunk == &chunk) next_deep_.chunk = deep_before(chunk);
  if (next_near_.chunk == &chunk) next_near_.chunk = near_behind(chunk);
  List& list = chunk.deep ? deep_ : near_;
  list.erase(list.iterator_to(chunk));
}

void ResidentChunks::come_near(Chunk& chunk) {
  remove(chunk);
  chunk.deep = false;
  add(chunk);
}

std::size_t ResidentChunks::count() const {
  return deep_.size() + near_.size();
}

void ResidentChunks::walk_deep(std::uint64_t checkpoint) {
  if (next_deep_.checkpoint != checkpoint)
    next_deep_ = {deep_.empty() ? nullptr : &deep_.back(), checkpoint};
}

Chunk& ResidentChunks::take_next_deep() {
  CHECK(has_next_deep(), "a deep chunk is left to be examined");
  Chunk& chunk = *next_deep_.chunk;
  next_deep_.chunk = deep_before(chunk);
  return chunk;
}

void ResidentChunks::walk_near(std::uint64_t checkpoint) {
  if (next_near_.checkpoint != checkpoint)
    next_near_ = {near_.empty() ? nullptr : &near_.front(), checkpoint};
}

Chunk& ResidentChunks::take_next_near() {
  CHECK(has_next_near(), "a near chunk is left to be examined");
  Chunk& chunk = *next_near_.chunk;
  next_near_.chunk = near_behind(chunk);
  return chunk;
}

void ResidentChunks::check_invariants() const {
  for (const List* list : {&deep_, &near_})
    for (const Chunk& chunk : *list)
      CHECK(!chunk.is_cold() && chunk.deep == (list == &deep_), "RT1: where a resident chunk is");
  const auto is_in = [](const List& list, const Chunk* next) {
    return next == nullptr ||
           std::ranges::any_of(list, [&](const Chunk& chunk) { return &chunk == next; });
  };
  CHECK(is_in(deep_, next_deep_.chunk), "RT2: the walk over deep chunks");
  CHECK(is_in(near_, next_near_.chunk), "RT2: the walk over near chunks");
}

}  // namespace stanchion::engine

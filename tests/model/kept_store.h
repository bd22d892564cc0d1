// A store in memory that the player hands an engine's checkpoints to.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "model/batch.h"
#include "tests/model/reference_model.h"

namespace stanchion::reference {

class KeptStore {
 public:
  void begin(Batch batch) {
    check(batch);
    under_way_ = std::move(batch);
  }
  bool is_under_way() const { return under_way_.has_value(); }

  // The checkpoint under way becomes durable …
  void finish() {
    const Batch batch = *std::exchange(under_way_, std::nullopt);
    for (const KeyRange& range : batch.erased_ranges)
      entries_.erase(entries_.lower_bound(range.begin), entries_.lower_bound(range.end));
    for (const Key& key : batch.erased) entries_.erase(std::string(key));
    for (const Put& put : batch.puts)
      entries_[std::string(put.key)] =
          put.head + std::string(put.content ? put.content->encoded() : "");
  }
  // … or is lost with the process.
  void lose() { under_way_.reset(); }

  engine::Engine::ScanStore scan() const {
    return [this](const KeyRange& range, const auto& visit) -> Status {
      for (auto it = entries_.lower_bound(range.begin);
           it != entries_.end() && it->first < range.end; ++it)
        if (!visit(it->first, it->second)) break;
      return {};
    };
  }

  std::size_t size() const { return entries_.size(); }

 private:
  // What every store requires of a batch.
  static void check(const Batch& batch) {
    std::set<std::string> keys(batch.erased.begin(), batch.erased.end());
    require(keys.size() == batch.erased.size(), "a key is erased twice in one checkpoint");
    for (const Put& put : batch.puts) {
      require(keys.insert(std::string(put.key)).second, "a key is changed twice in one checkpoint");
      for (const KeyRange& range : batch.erased_ranges)
        require(put.key.view() < range.begin || range.end <= put.key.view(),
                "a key is put into a range that the same checkpoint erases");
    }
  }

  std::map<std::string, std::string> entries_;
  std::optional<Batch> under_way_;
};

}  // namespace stanchion::reference

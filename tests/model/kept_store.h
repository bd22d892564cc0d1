// A store in memory to which the player gives an engine's checkpoints.
#pragma once

#include <algorithm>
#include <functional>
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
    batch.for_each_put([&](std::string_view key, std::string_view head, const ContentPtr& content) {
      std::string& value = entries_[std::string(key)] = head;
      if (content != nullptr) value += content->encoded();
    });
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
    std::set<std::string, std::less<>> keys(batch.erased.begin(), batch.erased.end());
    require(keys.size() == batch.erased.size(), "a key is erased twice in one checkpoint");
    batch.for_each_put([&](std::string_view key, std::string_view, const ContentPtr&) {
      require(keys.emplace(key).second, "a key is changed twice in one checkpoint");
      for (const KeyRange& range : batch.erased_ranges)
        require(key < range.begin || range.end <= key,
                "a key is put into a range that the same checkpoint erases");
    });
    for (const Series& series : batch.series) {
      const auto between = std::ranges::distance(keys.lower_bound(series.begin.view()),
                                                 keys.lower_bound(series.end.view()));
      require(static_cast<std::size_t>(between) == (series.packed ? 1 : series.entries.size()),
              "something lies between the entries of a series");
    }
  }

  std::map<std::string, std::string> entries_;
  std::optional<Batch> under_way_;
};

}  // namespace stanchion::reference

// Frees what takes long on another thread, and knows how many bytes of it are left.
//
//   DI1  Whoever has asked is told once, on the loop, when something was freed after it asked.
//
// Everything else runs on the loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "broker/background.h"
#include "broker/loop.h"

namespace stanchion::broker {

class Discards {
 public:
  Discards() = default;
  ~Discards() { left_->freed = nullptr; }
  Discards(const Discards&) = delete;
  Discards& operator=(const Discards&) = delete;

  void start(Loop& loop, Background& background, std::function<void()> freed) {
    loop_ = &loop;
    background_ = &background;
    left_->freed = std::move(freed);
  }

  // `gone` takes this much memory, about.
  template <class Gone>
  void free(Gone gone, std::size_t bytes) {
    left_->bytes += bytes;
    background_->run(Work::kDiscard, [what = std::optional(std::move(gone)), bytes, left = left_,
                                      loop = loop_]() mutable {
      what.reset();
      left->bytes -= bytes;
      if (!left->is_awaited.exchange(false)) return;
      loop->post([left] {
        if (left->freed) left->freed();
      });
    });
  }

  std::size_t bytes() const { return left_->bytes; }

  // What is freed from now on is told; what was freed before is in bytes() after this.
  void ask_to_be_told() const { left_->is_awaited = true; }

 private:
  struct Left {
    std::atomic<std::size_t> bytes = 0;
    std::atomic<bool> is_awaited = false;
    std::function<void()> freed;  // On the loop; empty when nobody is there any more.
  };

  Loop* loop_ = nullptr;
  Background* background_ = nullptr;
  const std::shared_ptr<Left> left_ = std::make_shared<Left>();
};

}  // namespace stanchion::broker

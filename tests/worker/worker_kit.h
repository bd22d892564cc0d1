// What tests of workers against the real server share: a server, queues, and what handlers saw.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "tests/client/server_process.h"
#include "worker/worker.h"

namespace stanchion::worker {

using client::Client;
using client::test::ServerProcess;

// Longer than anything takes on a busy machine.
inline constexpr std::chrono::seconds kPatience{60};

// Waits until it holds. A state that may pass unseen is not one to wait for.
[[nodiscard]] inline bool comes_true(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// What handlers have seen, and a wait for it.
class Record {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    seen_.push_back(text);
    changed_.notify_all();
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return seen_.size() >= count; });
  }
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> seen_;
};

class WorkerServer : public testing::Test {
 protected:
  std::string create(const std::string& name, client::StringMap attributes = {}) {
    auto made = client_.create_queue({.queue_name = name, .attributes = std::move(attributes)});
    if (!made) ADD_FAILURE() << made.error().to_string();
    return made ? made->queue_url : "";
  }

  std::unique_ptr<Worker> open(WorkerOptions options) {
    auto opened = Worker::open(client_, std::move(options));
    if (!opened) ADD_FAILURE() << opened.error().to_string();
    return opened ? std::move(*opened) : nullptr;
  }

  void send(const std::string& url, const std::string& body, const std::string& group = {}) {
    client::SendMessageRequest request{.queue_url = url, .message_body = body};
    if (!group.empty()) {
      request.message_group_id = group;
      request.message_deduplication_id = group + body;
    }
    auto sent = client_.send_message(std::move(request));
    EXPECT_TRUE(sent) << sent.error().to_string();
  }

  // Messages that are visible now.
  std::vector<std::string> visible(const std::string& url) {
    std::vector<std::string> bodies;
    while (true) {
      auto received = client_.receive_message({.queue_url = url, .max_number_of_messages = 10});
      if (!received || received->messages.empty()) return bodies;
      for (const auto& message : received->messages) bodies.push_back(message.body);
    }
  }

  // Visible and in flight.
  std::string left_in(const std::string& url) {
    auto attributes = client_.get_queue_attributes(
        {.queue_url = url,
         .attribute_names = {"ApproximateNumberOfMessages",
                             "ApproximateNumberOfMessagesNotVisible"}});
    if (!attributes) return attributes.error().to_string();
    return attributes->attributes["ApproximateNumberOfMessages"] + " visible, " +
           attributes->attributes["ApproximateNumberOfMessagesNotVisible"] + " in flight";
  }

  // Waits until that much is left. What a worker puts back while it stops may still go to a receive
  // that it has cancelled, and is in flight then until its visibility ends.
  bool wait_until_left(const std::string& url, const std::string& state) {
    return comes_true([&] { return left_in(url) == state; });
  }

  ServerProcess server_;
  Client client_ = std::move(*Client::open({.endpoint = server_.url()}));
};

}  // namespace stanchion::worker

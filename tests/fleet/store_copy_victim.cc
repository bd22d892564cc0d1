// Copies the store of one node's directory to another's as two nodes do, both in this process, so
// that copy_fault_test.py can make every system call of it fail.
//
//   store_copy_victim make DIR TEXT   a directory with a store that holds the text many times
//   store_copy_victim copy FROM TO    the store of FROM takes the place of that of TO
//   store_copy_victim show DIR        prints the text of the store, or "absent"
#include <fmt/format.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "broker/data_directory.h"
#include "fleet_node/replica_stores.h"
#include "link/store_copy.h"
#include "model/batch.h"
#include "os/real_directory.h"

namespace stanchion {
namespace {

constexpr ShardIndex kShard(0);
// So many that a store has several blocks.
constexpr int kEntries = 2'000;
constexpr std::chrono::seconds kPatience(20);

struct NodeDirectory {
  std::unique_ptr<os::Directory> root;
  std::unique_ptr<broker::DataDirectory> data;
  std::unique_ptr<fleet_node::ReplicaStores> stores;
};

Result<NodeDirectory> open_node(const std::string& path) {
  NodeDirectory node;
  auto root = os::open_real_directory(path);
  if (!root) return std::unexpected(std::move(root).error());
  node.root = std::move(*root);
  auto data = broker::DataDirectory::open_for_fleet(*node.root, "victims", 1, 7);
  if (!data) return std::unexpected(std::move(data).error());
  node.data = std::make_unique<broker::DataDirectory>(std::move(*data));
  node.stores = std::make_unique<fleet_node::ReplicaStores>(*node.data);
  return node;
}

Status make(const std::string& path, const std::string& text) {
  auto node = open_node(path);
  if (!node) return std::unexpected(std::move(node).error());
  auto store = node->stores->open(kShard);
  if (!store) return std::unexpected(std::move(store).error());
  Batch batch;
  for (int i = 0; i < kEntries; ++i)
    batch.puts.push_back({fmt::format("key {:08}", i), fmt::format("{} {}", text, i), nullptr});
  return (*store)->commit(batch);
}

Status copy(const std::string& from, const std::string& to) {
  auto source = open_node(from);
  if (!source) return std::unexpected(std::move(source).error());
  auto target = open_node(to);
  if (!target) return std::unexpected(std::move(target).error());
  // Both nodes have their stores open; that of the target is not read by anybody any more.
  if (auto opened = source->stores->open(kShard); !opened)
    return std::unexpected(std::move(opened).error());
  if (auto opened = target->stores->open(kShard); !opened)
    return std::unexpected(std::move(opened).error());
  const auto made = source->stores->copy(kShard);
  if (!made) return std::unexpected(made.error());
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    return fail("no pair of sockets");
  net::Stream sending(ends[0], nullptr), receiving(ends[1], nullptr);
  std::jthread sender([&] {
    link::BlockingStream stream(sending, kPatience);
    if (const Status sent = link::send_directory(stream, **made); !sent)
      static_cast<void>(link::send_failure(stream, sent.error().message));
    sending.shutdown_write();
  });
  return target->stores->replace(
      kShard, target->stores->openings(kShard), [&](const std::string& path) {
        link::BlockingStream stream(receiving, kPatience);
        Status received = link::receive_directory(stream, path);
        receiving.close();  // A sender that is in the middle of something must not wait.
        return received;
      });
}

Status show(const std::string& path) {
  auto node = open_node(path);
  if (!node) return std::unexpected(std::move(node).error());
  const auto there = os::exists(node->data->store_path(kShard));
  if (!there) return std::unexpected(there.error());
  if (!*there) {
    fmt::print("absent\n");
    return {};
  }
  auto store = node->stores->open(kShard);
  if (!store) return std::unexpected(std::move(store).error());
  std::string text;
  int entries = 0;
  RETURN_IF_FAILED((*store)->scan({"", "\xff"}, [&](std::string_view, std::string_view value) {
    text = value.substr(0, value.find(' '));
    ++entries;
    return true;
  }));
  if (entries != kEntries) return fail(fmt::format("it has {} entries", entries));
  fmt::print("{}\n", text);
  return {};
}

int run(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[1] : "";
  Status status = fail("usage: make DIR TEXT | copy FROM TO | show DIR");
  if (what == "make" && argc == 4) status = make(argv[2], argv[3]);
  if (what == "copy" && argc == 4) status = copy(argv[2], argv[3]);
  if (what == "show" && argc == 3) status = show(argv[2]);
  if (!status) fmt::print(stderr, "{}\n", status.error().message);
  return status ? 0 : 1;
}

}  // namespace
}  // namespace stanchion

int main(int argc, char** argv) {
  return stanchion::run(argc, argv);
}

#include "monitoring/metrics_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace stanchion::monitoring {
namespace {

using broker::QueueFigures;
using broker::ShardFigures;

QueueFigures queue_of(std::string account, std::string name) {
  QueueFigures figures;
  figures.queue = {std::move(account), "us-east-1", std::move(name)};
  return figures;
}

// Queues whose numbers tell them apart.
std::vector<ShardFigures> shards_with(const std::vector<std::size_t>& queues) {
  std::vector<ShardFigures> shards;
  std::uint64_t number = 0;
  for (const std::size_t count : queues) {
    ShardFigures& shard = shards.emplace_back();
    shard.shard = ShardIndex(static_cast<std::uint32_t>(shards.size() - 1));
    for (std::size_t i = 0; i < count; ++i) {
      shard.queues.push_back(queue_of("1", fmt::format("{}-{:05}", shards.size(), i)));
      shard.queues.back().activity.sent = ++number;
    }
  }
  return shards;
}

std::vector<std::string> parts_of(const MetricsPage& page) {
  std::vector<std::string> parts;
  MetricsPage::Place place;
  bool more = true;
  while (more) more = page.append_part(place, parts.emplace_back());
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

std::size_t count(std::string_view text, std::string_view wanted) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string_view::npos; ++at) ++n;
  return n;
}

TEST(MetricsPage, ASmallOneIsOnePart) {
  const MetricsPage page(shards_with({1, 0}), {});
  const auto parts = parts_of(page);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_NE(parts[0].find("stanchion_messages_sent_total{account=\"1\",region=\"us-east-1\","
                          "queue=\"1-00000\"} 1\n"),
            std::string::npos);
}

TEST(MetricsPage, PartsHaveABoundAndMakeTheWholePage) {
  for (const std::vector<std::size_t>& queues :
       {std::vector<std::size_t>{5'000}, {0, 3'000, 0, 2'000, 0}, {1, 4'999}, {4'999, 1}}) {
    const MetricsPage page(shards_with(queues), {});
    const auto parts = parts_of(page);
    EXPECT_GT(parts.size(), 50u);
    for (const std::string& part : parts) {
      EXPECT_LT(part.size(), MetricsPage::kPartBytes + 1024);
      EXPECT_TRUE(part.ends_with('\n'));
    }
    const std::string all = join(parts);
    std::set<std::string> lines;
    std::size_t types = 0, samples = 0;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = all.find('\n', at);
      const std::string line = all.substr(at, end - at);
      EXPECT_TRUE(lines.insert(line).second) << "twice: " << line;
      types += line.starts_with("# TYPE ");
      samples += line.starts_with("stanchion_messages_sent_total{");
      at = end + 1;
    }
    EXPECT_EQ(samples, 5'000u);
    EXPECT_EQ(types, count(all, "# HELP "));
    // All samples of a family stand together.
    const std::size_t first = all.find("\nstanchion_messages_sent_total{");
    const std::size_t last = all.rfind("\nstanchion_messages_sent_total{");
    EXPECT_EQ(count(std::string_view(all).substr(first, last - first), "# TYPE "), 0u);
  }
}

TEST(MetricsPage, EachAccountHasItsFirstQueuesOfAllShards) {
  std::vector<ShardFigures> shards(2);
  for (const char* name : {"a", "d", "e"}) shards[0].queues.push_back(queue_of("1", name));
  shards[0].queues.push_back(queue_of("2", "z"));
  shards[0].left_out["1"] = 7;
  for (const char* name : {"b", "c", "f"}) shards[1].queues.push_back(queue_of("1", name));
  keep_first_queues(shards, 3);
  const auto names = [&](std::size_t shard) {
    std::string all;
    for (const QueueFigures& queue : shards[shard].queues) all += queue.queue.name;
    return all;
  };
  EXPECT_EQ(names(0), "az");
  EXPECT_EQ(names(1), "bc");
  const MetricsPage page(std::move(shards), {});
  const std::string all = join(parts_of(page));
  EXPECT_NE(all.find("stanchion_queues_left_out{account=\"1\"} 10\n"), std::string::npos);
  EXPECT_EQ(all.find("stanchion_queues_left_out{account=\"2\"}"), std::string::npos);
}

TEST(MetricsPage, AnAccountsDeadLetterQueuesAreBoundedToo) {
  std::vector<QueueRef> queues;
  for (const char* name : {"d", "b", "a", "e", "c"}) queues.push_back({"1", "r", name});
  queues.push_back({"2", "r", "z"});
  ServerFigures server;
  server.dead_letter_queues_left_out = keep_first_dead_letter_queues(queues, 3);
  server.dead_letter_queues = queues;
  const MetricsPage page({}, server);
  const std::string all = join(parts_of(page));
  const auto marks = [&](const char* account, const char* name) {
    return all.find(fmt::format(
               "stanchion_dead_letter_queue{{account=\"{}\",region=\"r\",queue=\"{}\"}} 1\n",
               account, name)) != std::string::npos;
  };
  EXPECT_TRUE(marks("1", "a") && marks("1", "b") && marks("1", "c") && marks("2", "z")) << all;
  EXPECT_FALSE(marks("1", "d") || marks("1", "e"));
  EXPECT_NE(all.find("stanchion_dead_letter_queues_left_out{account=\"1\"} 2\n"),
            std::string::npos);
  EXPECT_EQ(all.find("stanchion_dead_letter_queues_left_out{account=\"2\"}"), std::string::npos);
}

}  // namespace
}  // namespace stanchion::monitoring

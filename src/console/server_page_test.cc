#include "console/server_page.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stanchion::console {
namespace {

using std::chrono::seconds;
using std::chrono::system_clock;

std::string value(const std::vector<ServerSection>& sections, std::string_view title,
                  std::string_view name) {
  const auto section = std::ranges::find(sections, title, &ServerSection::title);
  if (section == sections.end()) return "no such section";
  const auto row = std::ranges::find(section->rows, name, &ServerRow::name);
  return row == section->rows.end() ? "no such row" : row->value;
}

std::vector<ServerSection> told(const std::vector<broker::ShardFigures>& shards,
                                const monitoring::ServerFigures& server,
                                const std::string& account = "") {
  return describe_server(shards, server, system_clock::time_point(seconds(200'000)), account);
}

TEST(ServerPage, ShardsAreAddedUp) {
  std::vector<broker::ShardFigures> shards(2);
  shards[0].queue_count = 3;
  shards[1].queue_count = 4;
  shards[0].journal.commits = 2;
  shards[0].journal.records = 9;
  shards[1].journal.commits = 1;
  shards[0].journal.commit_time.buckets[2] = 98;
  shards[1].journal.commit_time.buckets[5] = 2;
  shards[0].message_bytes = shards[1].structure_bytes = std::size_t{1} << 20;
  monitoring::ServerFigures server;
  server.memory_budget = std::size_t{3} << 30;
  const auto sections = told(shards, server);
  EXPECT_EQ(value(sections, "Server", "Queues"), "7");
  EXPECT_EQ(value(sections, "Journal", "Records a commit"), "3.0");
  EXPECT_EQ(value(sections, "Journal", "Half of the commits"), "below 0.1 ms");
  EXPECT_EQ(value(sections, "Journal", "99 % of the commits"), "below 1 ms");
  EXPECT_EQ(value(sections, "Memory", "Messages and queues"), "2.0 MiB of 3.0 GiB");
}

TEST(ServerPage, OneFullDiskIsNotWell) {
  std::vector<broker::ShardFigures> shards(2);
  EXPECT_EQ(value(told(shards, {}), "Server", "Health"), "well");
  shards[1].disk_is_full = true;
  EXPECT_TRUE(value(told(shards, {}), "Server", "Health").starts_with("The disk is full"));
  EXPECT_EQ(value(told(shards, {}), "Disk", "Full"), "yes: sends are refused");
}

TEST(ServerPage, AnAccountIsToldTheNamesOfItsOwnDamagedQueuesOnly) {
  monitoring::ServerFigures server;
  server.damaged_queues = {"arn:aws:sqs:r:111111111111:mine", "arn:aws:sqs:r:222222222222:other"};
  EXPECT_EQ(value(told({}, server), "Disk", "Damaged queues"),
            "2: arn:aws:sqs:r:111111111111:mine, arn:aws:sqs:r:222222222222:other");
  EXPECT_EQ(value(told({}, server, "111111111111"), "Disk", "Damaged queues"),
            "2: arn:aws:sqs:r:111111111111:mine");
  EXPECT_EQ(value(told({}, server, "333333333333"), "Disk", "Damaged queues"), "2");
}

TEST(ServerPage, TimesAreInUnitsThatFit) {
  const auto up = [](double since) {
    monitoring::ServerFigures server;
    server.process.started = 200'000 - since;
    return value(told({}, server), "Server", "Up for");
  };
  EXPECT_EQ(up(5), "5 s");
  EXPECT_EQ(up(65), "1 min 5 s");
  EXPECT_EQ(up(3'720), "1 h 2 min");
  EXPECT_EQ(up(90'000), "1 d 1 h");
  EXPECT_EQ(up(-60), "0 s");  // The wall clock was set back.
}

}  // namespace
}  // namespace stanchion::console

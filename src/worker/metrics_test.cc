#include "worker/metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::worker {
namespace {

TEST(WorkerMetrics, AreWrittenAsPrometheusReadsThem) {
  QueueMetrics queue{.queue_url = "http://host/0/a\"b", .received = 7, .in_flight = 2};
  queue.duration.add(0.0005);
  queue.duration.add(0.02);
  queue.duration.add(10'000);
  const std::string text = WorkerMetrics{{queue}}.to_prometheus();
  const auto has = [&](const std::string& line) { return text.find(line + "\n") != text.npos; };
  EXPECT_TRUE(has("# TYPE stanchion_worker_received_total counter")) << text;
  EXPECT_TRUE(has("stanchion_worker_received_total{queue=\"http://host/0/a\\\"b\"} 7")) << text;
  EXPECT_TRUE(has("stanchion_worker_in_flight{queue=\"http://host/0/a\\\"b\"} 2")) << text;
  const std::string bucket =
      "stanchion_worker_duration_seconds_bucket{queue=\"http://host/0/a\\\"b\",le=";
  EXPECT_TRUE(has(bucket + "\"0.001\"} 1")) << text;
  EXPECT_TRUE(has(bucket + "\"0.1\"} 2")) << text;
  EXPECT_TRUE(has(bucket + "\"3600\"} 2")) << text;
  EXPECT_TRUE(has(bucket + "\"+Inf\"} 3")) << text;
}

TEST(WorkerMetrics, WhatWasNotReadFromTheQueueIsLeftOutAndNot0) {
  QueueMetrics queue{.queue_url = "u", .queue_visible = 98, .queue_in_flight = 2};
  EXPECT_EQ(WorkerMetrics{{queue}}.to_prometheus().find("stanchion_worker_queue_visible{"),
            std::string::npos);
  EXPECT_EQ(WorkerMetrics{{queue}}.to_prometheus().find("stanchion_worker_needs_more_age{"),
            std::string::npos);
  queue.measured = true;
  const std::string text = WorkerMetrics{{queue}}.to_prometheus();
  const auto has = [&](const std::string& line) { return text.find(line + "\n") != text.npos; };
  EXPECT_TRUE(has("stanchion_worker_queue_visible{queue=\"u\"} 98")) << text;
  EXPECT_TRUE(has("stanchion_worker_queue_in_flight{queue=\"u\"} 2")) << text;
  EXPECT_TRUE(has("stanchion_worker_needs_more_age{queue=\"u\"} 0")) << text;
}

}  // namespace
}  // namespace stanchion::worker

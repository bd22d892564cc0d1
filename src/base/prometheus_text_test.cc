#include "base/prometheus_text.h"

#include <gtest/gtest.h>

namespace stanchion {
namespace {

using Type = PrometheusText::Type;

TEST(PrometheusText, AFamilyIsItsHeadAndItsSamples) {
  PrometheusText text;
  text.family("stanchion_sent_total", Type::kCounter, "Messages.");
  text.sample({{"queue", "a"}}, std::uint64_t{18446744073709551615U});
  text.sample({{"queue", "b"}, {"region", "r"}}, 0.25);
  text.family("stanchion_up", Type::kGauge, "1.");
  text.sample({}, std::uint64_t{1});
  EXPECT_EQ(text.take(),
            "# HELP stanchion_sent_total Messages.\n"
            "# TYPE stanchion_sent_total counter\n"
            "stanchion_sent_total{queue=\"a\"} 18446744073709551615\n"
            "stanchion_sent_total{queue=\"b\",region=\"r\"} 0.25\n"
            "# HELP stanchion_up 1.\n"
            "# TYPE stanchion_up gauge\n"
            "stanchion_up 1\n");
}

TEST(PrometheusText, NoValueOfALabelEndsTheLabel) {
  const Labels labels{{"queue", "a\"b\\c\nd}"}};
  EXPECT_EQ(labels.text(), R"(queue="a\"b\\c\nd}")");
}

TEST(PrometheusText, TheBucketsOfAHistogramHoldAllBelowThem) {
  LatencyCounts counts;
  counts.buckets[0] = 3;
  counts.buckets[2] = 4;
  counts.buckets.back() = 5;
  counts.micros = 2'500'000;
  PrometheusText text;
  text.family("took_seconds", Type::kHistogram, "Time.");
  text.histogram({{"action", "SendMessage"}}, counts);
  const std::string page = text.take();
  for (const char* line : {"took_seconds_bucket{action=\"SendMessage\",le=\"2.5e-05\"} 3\n",
                           "took_seconds_bucket{action=\"SendMessage\",le=\"5e-05\"} 3\n",
                           "took_seconds_bucket{action=\"SendMessage\",le=\"0.0001\"} 7\n",
                           "took_seconds_bucket{action=\"SendMessage\",le=\"10\"} 7\n",
                           "took_seconds_bucket{action=\"SendMessage\",le=\"+Inf\"} 12\n",
                           "took_seconds_sum{action=\"SendMessage\"} 2.5\n",
                           "took_seconds_count{action=\"SendMessage\"} 12\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
}

}  // namespace
}  // namespace stanchion

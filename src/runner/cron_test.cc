#include "runner/cron.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::runner {
namespace {

using namespace std::chrono_literals;

Minute at(int year, unsigned month, unsigned day, int hour, int minute) {
  return std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                               static_cast<int>(day)) +
         std::chrono::hours(hour) + std::chrono::minutes(minute);
}

std::string next(const char* schedule, Minute after) {
  const auto read = Schedule::parse(schedule);
  if (!read) return read.error().message;
  const auto found = read->next(after);
  return found ? iso_time(*found) : "never";
}

TEST(Schedule, TheNextTimeIsAfterTheGivenOne) {
  const Minute noon = at(2026, 11, 16, 12, 0);  // A Monday.
  EXPECT_EQ(next("* * * * *", noon), "2026-11-16T12:01:00Z");
  EXPECT_EQ(next("0 * * * *", noon), "2026-11-16T13:00:00Z");
  EXPECT_EQ(next("*/15 * * * *", noon), "2026-11-16T12:15:00Z");
  EXPECT_EQ(next("5/20 * * * *", noon), "2026-11-16T12:05:00Z");
  EXPECT_EQ(next("30 8-10,23 * * *", noon), "2026-11-16T23:30:00Z");
  EXPECT_EQ(next("0 0 * * MON-fri", at(2026, 11, 20, 12, 0)), "2026-11-23T00:00:00Z");
  EXPECT_EQ(next("0 0 * * 7", noon), "2026-11-22T00:00:00Z");
  EXPECT_EQ(next("0 0 * * 5-7", noon), "2026-11-20T00:00:00Z");
  EXPECT_EQ(next("0 0 31 * *", noon), "2026-12-31T00:00:00Z");
  EXPECT_EQ(next("59 23 29 feb *", noon), "2028-02-29T23:59:00Z");
  EXPECT_EQ(next("@monthly", noon), "2026-12-01T00:00:00Z");
}

TEST(Schedule, IfBothDaysAreRestrictedOneOfThemSuffices) {
  EXPECT_EQ(next("0 0 1 * SUN", at(2026, 11, 16, 12, 0)), "2026-11-22T00:00:00Z");
  EXPECT_EQ(next("0 0 1 * SUN", at(2026, 11, 29, 12, 0)), "2026-12-01T00:00:00Z");
}

TEST(Schedule, WhatCannotBeReadIsRefused) {
  for (const char* text :
       {"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *",
        "* * * 13 *", "* * * * 8", "a * * * *", "1- * * * *", "5-1 * * * *", "*/0 * * * *",
        "1,,2 * * * *", "-1 * * * *", "@never", "99999999999999999999 * * * *"})
    EXPECT_FALSE(Schedule::parse(text)) << text;
  EXPECT_NE(next("0 0 30 2 *", at(2026, 1, 1, 0, 0)).find("never comes"), std::string::npos);
}

TEST(CronYaml, TasksAreRead) {
  const auto tasks = parse_cron_yaml(R"(# Comments and empty lines do not count.
version: 1   # nor do these

cron:
 - name: "backup-job"          # required
   url: "/backup"
   schedule: "0 */12 * * *"
 -
   schedule: '5 4 * * sun'
   name: audit
   url: /audit?full=1
)");
  ASSERT_TRUE(tasks) << tasks.error().message;
  ASSERT_EQ(tasks->size(), 2u);
  EXPECT_EQ(tasks->at(0).name, "backup-job");
  EXPECT_EQ(tasks->at(0).path, "/backup");
  EXPECT_TRUE(tasks->at(0).schedule.is_due(at(2026, 11, 16, 12, 0)));
  EXPECT_EQ(tasks->at(1).name, "audit");
  EXPECT_EQ(tasks->at(1).path, "/audit?full=1");
}

std::string mistake(const std::string& text) {
  const auto tasks = parse_cron_yaml(text);
  return tasks ? "none" : tasks.error().message;
}

TEST(CronYaml, AMistakeIsSaidWithItsLine) {
  const std::string head = "version: 1\ncron:\n";
  EXPECT_EQ(mistake(""), "\"version: 1\" is missing");
  EXPECT_EQ(mistake("version: 2\n"), "line 1: the version must be 1");
  EXPECT_EQ(mistake("version: 1\n"), "\"cron:\" with at least one task is missing");
  EXPECT_EQ(mistake("version: 1\nurl: /a\n"),
            "line 2: \"url\" is not known here; expected are version and cron");
  EXPECT_EQ(mistake("version: 1\n - name: a\n"), "line 2: a task stands outside of \"cron:\"");
  EXPECT_EQ(mistake(head + " - name: a\n   urll: /a\n"),
            "line 4: \"urll\" is not known; a task has name, url and schedule");
  EXPECT_EQ(mistake(head + " - name: a\n   name: b\n"), "line 4: \"name\" is there twice");
  EXPECT_EQ(mistake(head + " - name: a\n   url: /a\n"),
            "line 4: the task before lacks a name, url or schedule");
  EXPECT_EQ(mistake(head + " - name: a\n   url: a\n   schedule: '* * * * *'\n"),
            "line 5: the url of a task is a path that begins with /");
  EXPECT_NE(mistake(head + " - name: a\n   url: /a\n   schedule: '61 * * * *'\n")
                .find("line 5: task \"a\": the minute \"61\" cannot be read"),
            std::string::npos);
  const std::string task = " - name: a\n   url: /a\n   schedule: '* * * * *'\n";
  EXPECT_EQ(mistake(head + task + task), "line 8: two tasks are named \"a\"");
  EXPECT_NE(mistake(head + " - name: 'a\n").find("is not a key with a value"), std::string::npos);
  EXPECT_NE(mistake(std::string(300'000, '#')).find("more than"), std::string::npos);
}

}  // namespace
}  // namespace stanchion::runner

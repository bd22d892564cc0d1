// Periodic tasks, as cron.yaml of Elastic Beanstalk's worker environments describes them.
//
//   version: 1
//   cron:
//    - name: "report"
//      url: "/report"
//      schedule: "0 */12 * * *"
//
// Times are UTC. Pure: no clock, no file.
#pragma once

#include <bitset>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stanchion::runner {

using Minute = std::chrono::sys_time<std::chrono::minutes>;

inline constexpr std::size_t kCronBytesMax = 256 * 1024;
inline constexpr std::size_t kCronTasksMax = 1'000;

// The message attributes by which a message says which task it is, named as sqsd names them.
inline constexpr const char* kTaskNameAttribute = "beanstalk.sqsd.task_name";
inline constexpr const char* kTaskPathAttribute = "beanstalk.sqsd.path";
inline constexpr const char* kTaskTimeAttribute = "beanstalk.sqsd.scheduled_time";
inline constexpr const char* kTaskBody = "elasticbeanstalk scheduled job";

// "*/5 8-17 * * MON-FRI": minute, hour, day of the month, month, day of the week. If both days are
// restricted, one of them must match, as in cron.
class Schedule {
 public:
  static Result<Schedule> parse(std::string_view text);

  bool is_due(Minute at) const;
  // The first due minute after `after`; nothing: there is none within ten years.
  std::optional<Minute> next(Minute after) const;

 private:
  bool day_matches(std::chrono::sys_days day) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;     // From 1.
  std::bitset<13> months_;   // From 1.
  std::bitset<7> weekdays_;  // From Sunday.
  bool any_day_ = true;
  bool any_weekday_ = true;
};

struct PeriodicTask {
  std::string name;
  std::string path;
  Schedule schedule;
};

// A failure names the line.
Result<std::vector<PeriodicTask>> parse_cron_yaml(std::string_view text);

// "2026-11-16T12:00:00Z".
std::string iso_time(Minute at);
// Nullopt unless it is a time as iso_time() writes it.
std::optional<Minute> parse_iso_time(const std::string& text);

}  // namespace stanchion::runner

#include "runner/cron.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/text.h"
#include "runner/job_status.h"

namespace stanchion::runner {
namespace {

using std::chrono::sys_days;

constexpr std::size_t kNameMax = 100;
constexpr int kYearsMax = 10;
constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};

struct Range {
  unsigned first;
  unsigned last;
};

// A field of a schedule: what its numbers may be, and names that may stand for them.
struct Field {
  const char* name;
  Range range;
  std::span<const std::string_view> names;  // The first one stands for range.first.
};

std::optional<unsigned> number_of(std::string_view text, const Field& field) {
  for (std::size_t i = 0; i < field.names.size(); ++i)
    if (equals_ignoring_ascii_case(text, field.names[i]))
      return field.range.first + static_cast<unsigned>(i);
  const auto number = parse_decimal(text);
  // Sunday is 0 and 7.
  const unsigned last = field.range.last == 6 ? 7 : field.range.last;
  if (!number || *number < field.range.first || *number > last) return std::nullopt;
  return static_cast<unsigned>(*number);
}

// "5", "1-5", "*", each perhaps with "/2".
std::optional<std::pair<Range, unsigned>> part_of(std::string_view text, const Field& field) {
  unsigned step = 1;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto number = parse_decimal(text.substr(slash + 1));
    if (!number || *number < 1 || *number > field.range.last) return std::nullopt;
    step = static_cast<unsigned>(*number);
    text = text.substr(0, slash);
  }
  if (text == "*") return std::pair(field.range, step);
  const std::size_t dash = text.find('-');
  const auto first = number_of(text.substr(0, dash), field);
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos)
    return std::pair(Range{*first, slash == std::string_view::npos ? *first : field.range.last},
                     step);
  const auto last = number_of(text.substr(dash + 1), field);
  if (!last || *last < *first) return std::nullopt;
  return std::pair(Range{*first, *last}, step);
}

template <std::size_t Size>
Status read_field(std::string_view text, const Field& field, std::bitset<Size>& out) {
  const std::string whole(text);
  while (true) {
    const std::size_t comma = text.find(',');
    const auto part = part_of(text.substr(0, comma), field);
    if (!part)
      return fail(fmt::format("the {} \"{}\" cannot be read; it is from {} to {}", field.name,
                              in_short(whole), field.range.first, field.range.last));
    for (unsigned i = part->first.first; i <= part->first.last; i += part->second)
      out.set(i % Size);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

// Without a comment, which begins with '#' at the start or behind a space, outside of quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

struct Member {
  std::string key;
  std::string value;
};

// "key: value", of which the value may be quoted.
std::optional<Member> member_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view value = trim(text.substr(colon + 1));
  if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
    if (value.size() < 2 || value.back() != value.front()) return std::nullopt;
    value = value.substr(1, value.size() - 2);
    // What would need to be unescaped is not needed in names, paths and schedules.
    if (value.find_first_of("\"'\\") != std::string_view::npos) return std::nullopt;
  }
  return Member{std::string(trim(text.substr(0, colon))), std::string(value)};
}

// Reads the few forms of YAML that a cron.yaml has, line by line.
class CronReader {
 public:
  Result<std::vector<PeriodicTask>> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      RETURN_IF_FAILED(read_line(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    RETURN_IF_FAILED(end_task());
    if (!version_) return fail("\"version: 1\" is missing");
    if (tasks_.empty()) return fail("\"cron:\" with at least one task is missing");
    return std::move(tasks_);
  }

 private:
  std::unexpected<Failure> wrong(const std::string& what) const {
    return fail(fmt::format("line {}: {}", line_, what));
  }

  Status read_line(std::string_view line) {
    std::string_view text = trim(without_comment(line));
    if (text.empty() || text == "---") return {};
    const bool indented = line.front() == ' ' || line.front() == '\t';
    const bool item = text == "-" || text.starts_with("- ");
    if (item) {
      if (!in_cron_) return wrong("a task stands outside of \"cron:\"");
      RETURN_IF_FAILED(end_task());
      if (tasks_.size() >= kCronTasksMax)
        return wrong(fmt::format("more than {} tasks", kCronTasksMax));
      task_.emplace();
      text = trim(text.substr(1));
      if (text.empty()) return {};
    }
    const auto member = member_of(text);
    if (!member) return wrong(fmt::format("\"{}\" is not a key with a value", in_short(text)));
    if (item || indented) return take(*member);
    RETURN_IF_FAILED(end_task());
    return take_top(*member);
  }

  Status take_top(const Member& member) {
    in_cron_ = false;
    if (member.key == "version") {
      if (member.value != "1") return wrong("the version must be 1");
      version_ = true;
    } else if (member.key == "cron" && member.value.empty()) {
      in_cron_ = true;
    } else {
      return wrong(fmt::format("\"{}\" is not known here; expected are version and cron",
                               in_short(member.key)));
    }
    return {};
  }

  Status take(const Member& member) {
    if (!task_) return wrong("a member stands outside of a task, which begins with \"- \"");
    std::string* const where = member.key == "name"       ? &task_->name
                               : member.key == "url"      ? &task_->url
                               : member.key == "schedule" ? &task_->schedule
                                                          : nullptr;
    if (where == nullptr)
      return wrong(fmt::format("\"{}\" is not known; a task has name, url and schedule",
                               in_short(member.key)));
    if (!where->empty()) return wrong(fmt::format("\"{}\" is there twice", member.key));
    *where = member.value;
    return {};
  }

  Status end_task() {
    if (!task_) return {};
    const Texts texts = std::move(*task_);
    task_.reset();
    if (texts.name.empty() || texts.url.empty() || texts.schedule.empty())
      return wrong("the task before lacks a name, url or schedule");
    if (texts.name.size() > kNameMax ||
        !std::ranges::all_of(texts.name, [](char c) { return c > ' ' && c < 0x7F; }))
      return wrong(
          fmt::format("the name \"{}\" is longer than {} or has other than plain letters, "
                      "digits and signs",
                      in_short(texts.name), kNameMax));
    if (!texts.url.starts_with('/')) return wrong("the url of a task is a path that begins with /");
    auto schedule = Schedule::parse(texts.schedule);
    if (!schedule)
      return wrong(fmt::format("task \"{}\": {}", texts.name, schedule.error().message));
    for (const PeriodicTask& other : tasks_)
      if (other.name == texts.name)
        return wrong(fmt::format("two tasks are named \"{}\"", texts.name));
    tasks_.push_back({texts.name, texts.url, *schedule});
    return {};
  }

  struct Texts {
    std::string name;
    std::string url;
    std::string schedule;
  };

  int line_ = 0;
  bool version_ = false;
  bool in_cron_ = false;
  std::optional<Texts> task_;
  std::vector<PeriodicTask> tasks_;
};

}  // namespace

Result<Schedule> Schedule::parse(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kNicknames[] = {
      {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
      {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
      {"@annually", "0 0 1 1 *"}};
  for (const auto& [name, meaning] : kNicknames)
    if (text == name) text = meaning;
  const auto words = words_of(text);
  if (words.size() != 5)
    return fail(
        fmt::format("the schedule \"{}\" does not have the five fields of cron: minute, hour, "
                    "day of the month, month, day of the week",
                    in_short(text)));
  Schedule schedule;
  RETURN_IF_FAILED(read_field(words[0], {"minute", {0, 59}, {}}, schedule.minutes_));
  RETURN_IF_FAILED(read_field(words[1], {"hour", {0, 23}, {}}, schedule.hours_));
  RETURN_IF_FAILED(read_field(words[2], {"day of the month", {1, 31}, {}}, schedule.days_));
  RETURN_IF_FAILED(read_field(words[3], {"month", {1, 12}, kMonths}, schedule.months_));
  RETURN_IF_FAILED(
      read_field(words[4], {"day of the week", {0, 6}, kWeekdays}, schedule.weekdays_));
  schedule.any_day_ = words[2].starts_with('*');
  schedule.any_weekday_ = words[4].starts_with('*');
  // Any moment will do.
  if (!schedule.next(Minute{}))
    return fail(fmt::format("the schedule \"{}\" never comes", in_short(text)));
  return schedule;
}

bool Schedule::day_matches(sys_days day) const {
  const std::chrono::year_month_day date(day);
  if (!months_[static_cast<unsigned>(date.month())]) return false;
  const bool in_month = days_[static_cast<unsigned>(date.day())];
  const bool in_week = weekdays_[std::chrono::weekday(day).c_encoding()];
  if (any_day_ || any_weekday_) return in_month && in_week;
  return in_month || in_week;
}

bool Schedule::is_due(Minute at) const {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::hh_mm_ss time(at - day);
  return day_matches(day) && hours_[static_cast<std::size_t>(time.hours().count())] &&
         minutes_[static_cast<std::size_t>(time.minutes().count())];
}

std::optional<Minute> Schedule::next(Minute after) const {
  const Minute end = after + std::chrono::days(366 * kYearsMax);
  Minute at = after + std::chrono::minutes(1);
  while (at < end) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    if (!day_matches(day)) {
      at = day + std::chrono::days(1);
    } else if (is_due(at)) {
      return at;
    } else {
      at += std::chrono::minutes(1);
    }
  }
  return std::nullopt;
}

Result<std::vector<PeriodicTask>> parse_cron_yaml(std::string_view text) {
  if (text.size() > kCronBytesMax)
    return fail(fmt::format("the file has more than {} bytes", kCronBytesMax));
  return CronReader().read(text);
}

std::string iso_time(Minute at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(at)));
}

std::optional<Minute> parse_iso_time(const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::floor<std::chrono::minutes>(
      std::chrono::system_clock::from_time_t(::timegm(&parts)));
}

}  // namespace stanchion::runner

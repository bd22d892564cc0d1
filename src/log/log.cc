#include "log/log.h"

#define SPDLOG_FMT_EXTERNAL
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <iterator>
#include <mutex>

#include "base/printable.h"
#include "base/text.h"

namespace stanchion::log {
namespace {

namespace json = boost::json;

constexpr const char* kEvents = "stanchion";
constexpr const char* kCalls = "access";
// Bytes that may wait for a reader that is slow or absent.
constexpr std::size_t kWaitingMax = 1 << 20;
constexpr std::chrono::milliseconds kFlushMax(1000);

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string_view name_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warning";
    case spdlog::level::err:
      return "error";
    default:
      return "info";
  }
}

std::string json_string(std::string_view text) {
  return printable_json(
      json::serialize(json::value(is_utf8(text) ? std::string(text) : printable(text))));
}

// One line per event. Calls are already formatted as members of an object, everything else is a
// message.
class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    using namespace std::chrono;
    const auto seconds = time_point_cast<std::chrono::seconds>(msg.time);
    const auto millis = duration_cast<milliseconds>(msg.time - seconds).count();
    const std::string_view payload(msg.payload.data(), msg.payload.size());
    const bool is_call = std::string_view(msg.logger_name.data(), msg.logger_name.size()) == kCalls;
    const auto time = fmt::gmtime(system_clock::to_time_t(seconds));
    auto to = std::back_inserter(out);
    if (format_ == LogFormat::kText) {
      fmt::format_to(to, "{:%Y-%m-%dT%H:%M:%S}.{:03}Z {} {}\n", time, millis, name_of(msg.level),
                     is_call ? std::string(payload) : printable(payload));
    } else {
      fmt::format_to(
          to, "{{\"time\":\"{:%Y-%m-%dT%H:%M:%S}.{:03}Z\",\"level\":\"{}\",{}}}\n", time, millis,
          name_of(msg.level),
          is_call ? std::string(payload) : fmt::format("\"message\":{}", json_string(payload)));
    }
  }

  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(format_);
  }

 private:
  LogFormat format_;
};

// Writes complete lines into the pipe.
class PipeSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit PipeSink(LogPipe& pipe) : pipe_(pipe) {}

 private:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    spdlog::memory_buf_t line;
    formatter_->format(msg, line);
    pipe_.write({line.data(), line.size()});
  }
  void flush_() override {}

  LogPipe& pipe_;
};

std::string line_of_loss(std::uint64_t lines, LogFormat format) {
  const std::string text = fmt::format("{} lines of the log were dropped: nobody read them", lines);
  const spdlog::details::log_msg message(kEvents, spdlog::level::warn, text);
  spdlog::memory_buf_t line;
  LineFormatter(format).format(message, line);
  return {line.data(), line.size()};
}

// A value on a line of several: never empty, and without spaces, so that it cannot begin another.
std::string word(std::string_view text) {
  if (text.empty()) return "-";
  std::string out = printable(text);
  for (std::size_t at = 0; (at = out.find(' ', at)) != std::string::npos;)
    out.replace(at, 1, "\\x20");
  return out;
}

}  // namespace

Log::Log(const LogSettings& settings)
    : Log(settings, std::make_shared<LogPipe>(STDERR_FILENO, kWaitingMax,
                                              [format = settings.format](std::uint64_t lines) {
                                                return line_of_loss(lines, format);
                                              })) {}

Log::Log(const LogSettings& settings, std::shared_ptr<LogPipe> pipe)
    : Log(settings, std::make_shared<PipeSink>(*pipe), pipe) {}

Log::Log(const LogSettings& settings, std::shared_ptr<spdlog::sinks::sink> sink,
         std::shared_ptr<LogPipe> pipe)
    : settings_(settings), pipe_(std::move(pipe)) {
  sink->set_formatter(std::make_unique<LineFormatter>(settings.format));
  events_ = std::make_shared<spdlog::logger>(kEvents, sink);
  events_->set_level(to_spdlog(settings.level));
  events_->flush_on(spdlog::level::trace);
  calls_ = std::make_shared<spdlog::logger>(kCalls, sink);
}

Log::~Log() = default;

void Log::flush() {
  if (pipe_) pipe_->flush(kFlushMax);
}

void Log::debug(std::string_view message) {
  events_->debug("{}", message);
}
void Log::info(std::string_view message) {
  events_->info("{}", message);
}
void Log::warning(std::string_view message) {
  events_->warn("{}", message);
}
void Log::error(std::string_view message) {
  events_->error("{}", message);
}

AccessLog Log::access_log() {
  if (!settings_.access) return nullptr;
  return [this](const AccessRecord& record) {
    calls_->info("{}", format_access(record, settings_.format));
  };
}

std::string format_access(const AccessRecord& r, LogFormat format) {
  if (format == LogFormat::kText)
    return fmt::format(
        "access peer={} account={} action={} queue={} status={} error={} request_bytes={} "
        "response_bytes={} micros={} id={}",
        word(r.peer), word(r.account), word(r.action), word(r.queue), r.status, word(r.error),
        r.request_bytes, r.response_bytes, r.took.count(), r.request_id);
  return fmt::format(
      R"("event":"access","peer":{},"account":{},"action":{},"queue":{},"status":{},"error":{},)"
      R"("request_bytes":{},"response_bytes":{},"micros":{},"id":{})",
      json_string(r.peer), json_string(r.account), json_string(r.action), json_string(r.queue),
      r.status, json_string(r.error), r.request_bytes, r.response_bytes, r.took.count(),
      json_string(r.request_id));
}

}  // namespace stanchion::log

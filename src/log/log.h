// The server's log on standard error: lines of text or of JSON. Any thread; no thread waits for the
// reader, and lines that cannot be written are dropped and counted (log_pipe.h).
//
// A log line never holds a secret, a signature, a header or a body: a call is logged only by the
// fields of AccessRecord.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "log/access_record.h"
#include "log/log_pipe.h"
#include "log/settings.h"

namespace spdlog {
class logger;
namespace sinks {
class sink;
}
}  // namespace spdlog

namespace stanchion::log {

class Log {
 public:
  explicit Log(const LogSettings& settings);
  Log(const LogSettings& settings, std::shared_ptr<LogPipe> pipe);
  // For tests: logs to a place of their own.
  Log(const LogSettings& settings, std::shared_ptr<spdlog::sinks::sink> sink,
      std::shared_ptr<LogPipe> pipe = nullptr);
  ~Log();

  void debug(std::string_view message);
  void info(std::string_view message);
  void warning(std::string_view message);
  void error(std::string_view message);

  // Waits until everything is written, but not long.
  void flush();

  // A function that logs calls, if the settings say so; else null, so that no record is made in
  // vain.
  AccessLog access_log();

 private:
  LogSettings settings_;
  std::shared_ptr<LogPipe> pipe_;  // Null in tests.
  std::shared_ptr<spdlog::logger> events_;
  std::shared_ptr<spdlog::logger> calls_;
};

// One call as the end of a line: "access peer=192.0.2.1 action=…" or members of a JSON object.
std::string format_access(const AccessRecord& record, LogFormat format);

}  // namespace stanchion::log

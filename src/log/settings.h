// What the settings say about the log.
#pragma once

#include <cstdint>

namespace stanchion::log {

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct LogSettings {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;
  bool access = false;
};

}  // namespace stanchion::log

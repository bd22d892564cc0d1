// The lines between `stanchion work --lines` and its process: one JSON object a line.
//
//   to the process    {"id":"7","messageId":"…","queueName":"jobs","receiveCount":1,"body":"…",…}
//   from the process  {"id":"7","verdict":"done"}
//                     {"id":"7","verdict":"retry","delay":30,"reason":"the printer is busy"}
//                     {"id":"7","verdict":"reject"}
//
// docs/work.md describes all members.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "worker/options.h"
#include "worker/task.h"

namespace stanchion::runner {

// Of an answer; the process has no reason to write more.
inline constexpr std::size_t kAnswerBytesMax = 64 * 1024;

// With its line end.
std::string line_of(std::string_view id, const worker::TaskInformation& task);

struct LineAnswer {
  std::string id;
  // Nothing: the answer names a message, but its verdict makes no sense; `reason` says why.
  std::optional<worker::Verdict> verdict;
  std::string reason;  // In the process's words; empty: none.
};

// A failure says why the line answers no message.
Result<LineAnswer> read_answer(std::string_view line);

}  // namespace stanchion::runner

#include "engine/task_handle.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/text.h"
#include "model/limits.h"

namespace stanchion::engine {

namespace json = boost::json;

std::string format_task_handle(const TaskId& task, const std::string& source_arn) {
  return to_base64(fmt::format(R"({{"taskId":"{}","sourceArn":"{}"}})", task.text(), source_arn));
}

std::optional<TaskHandle> parse_task_handle(std::string_view handle) {
  if (handle.size() > limits::kReceiptHandleSizeMax) return std::nullopt;
  const auto text = from_base64(handle);
  if (!text) return std::nullopt;
  json::error_code error;
  const json::value value = json::parse(*text, error);
  if (error || !value.is_object()) return std::nullopt;
  const json::value* task = value.as_object().if_contains("taskId");
  const json::value* source = value.as_object().if_contains("sourceArn");
  if (task == nullptr || source == nullptr || !task->is_string() || !source->is_string())
    return std::nullopt;
  const auto id = parse_uuid(std::string_view(task->as_string()));
  const auto ref = parse_queue_arn(std::string_view(source->as_string()));
  if (!id || !ref) return std::nullopt;
  return TaskHandle{{*id}, *ref};
}

}  // namespace stanchion::engine

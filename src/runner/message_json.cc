#include "runner/message_json.h"

#include "base/text.h"

namespace stanchion::runner {

namespace json = boost::json;

json::object message_attributes_json(const worker::TaskInformation& task, bool lists) {
  json::object all;
  for (const auto& [name, attribute] : task.message_attributes) {
    json::object one;
    if (attribute.string_value) one["stringValue"] = *attribute.string_value;
    if (attribute.binary_value) one["binaryValue"] = to_base64(*attribute.binary_value);
    if (lists) {
      one["stringListValues"] = json::array();
      one["binaryListValues"] = json::array();
    }
    one["dataType"] = attribute.data_type;
    all[name] = std::move(one);
  }
  return all;
}

json::object attributes_json(const worker::TaskInformation& task) {
  json::object all;
  for (const auto& [name, value] : task.attributes) all[name] = value;
  return all;
}

}  // namespace stanchion::runner

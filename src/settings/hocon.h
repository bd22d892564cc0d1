// HOCON, as far as ElasticMQ's configuration uses it: objects, arrays, quoted and bare text, paths
// as keys, comments. `include` and ${substitutions} are reported and not followed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stanchion::settings {

struct HoconValue;

// Members in the order of the text; a repeated key replaces the earlier value, objects are merged.
struct HoconObject {
  std::vector<std::pair<std::string, HoconValue>> members;

  HoconValue* find(std::string_view key);
  const HoconValue* find(std::string_view key) const;
};

using HoconArray = std::vector<HoconValue>;

struct HoconValue {
  std::variant<std::string, HoconObject, HoconArray> value;

  const std::string* text() const { return std::get_if<std::string>(&value); }
  const HoconObject* object() const { return std::get_if<HoconObject>(&value); }
};

struct Hocon {
  HoconObject root;
  std::vector<std::string> notes;  // What was ignored, with its line.
};

// The failure names the line.
Result<Hocon> parse_hocon(std::string_view text);

}  // namespace stanchion::settings

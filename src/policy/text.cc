#include "policy/text.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "policy/keys.h"

namespace stanchion::policy {
namespace {

constexpr std::string_view kOpening = "${";

// Null if the key has no value, or may have several: which of them would be meant? An empty one is
// none, or "${key}*" would match everything.
const std::string* value_of(const PolicyContext& context, const std::string& key) {
  const auto found = context.find(key);
  if (found == context.end() || found->second.size() != 1 || is_multivalued(key)) return nullptr;
  const std::string& value = found->second.front();
  return value.empty() ? nullptr : &value;
}

// A short text is inside its object.
template <class Text>
std::size_t heap_bytes(const Text& text) {
  static const std::size_t kInside = Text().capacity();
  return text.capacity() > kInside ? (text.capacity() + 1) * sizeof(typename Text::value_type) : 0;
}

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

}  // namespace

// Reads a text with variables from its beginning to its end.
class PolicyText::Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) { made_.written_ = text; }

  std::expected<PolicyText, std::string> read() {
    while (true) {
      const std::size_t opening = rest_.find(kOpening);
      append_with_wildcards(made_.end_, rest_.substr(0, opening));
      if (opening == std::string_view::npos) {
        made_.variables_.shrink_to_fit();
        return std::move(made_);
      }
      rest_.remove_prefix(opening + kOpening.size());
      if (const std::string_view problem = read_variable(); !problem.empty())
        return std::unexpected(std::string(problem));
    }
  }

 private:
  // `rest_` begins behind its "${". What is wrong with it, or nothing.
  std::string_view read_variable() {
    constexpr std::string_view kUnclosed = "A variable (${...}) is not closed.";
    const std::size_t end = rest_.find_first_of(",}");
    if (end == std::string_view::npos) return kUnclosed;
    const bool has_default = rest_[end] == ',';
    const std::string_view name = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (!has_default && (name == "*" || name == "?" || name == "$")) {
      append_literally(made_.end_, name);
      return {};
    }
    if (name.empty()) return "A variable (${...}) has no name.";
    if (name.find_first_of(" \t\r\n$'{") != std::string_view::npos)
      return "The name of a variable (${...}) has a character that it cannot have.";
    std::optional<std::string> otherwise;
    if (has_default) {
      otherwise = read_default();
      if (!otherwise) return "The default of a variable must be in single quotes: ${key, 'value'}.";
      if (!rest_.starts_with('}')) return kUnclosed;
      rest_.remove_prefix(1);
    }
    made_.variables_.push_back(
        {std::exchange(made_.end_, {}), to_lower_ascii(name), std::move(otherwise)});
    return {};
  }

  std::optional<std::string> read_default() {
    skip_spaces(rest_);
    if (!rest_.starts_with('\'')) return std::nullopt;
    const std::size_t closing = rest_.find('\'', 1);
    if (closing == std::string_view::npos) return std::nullopt;
    std::string value(rest_.substr(1, closing - 1));
    rest_.remove_prefix(closing + 1);
    skip_spaces(rest_);
    return value;
  }

  std::string_view rest_;
  PolicyText made_;
};

PolicyText::PolicyText(std::string_view text) : written_(text) {
  append_with_wildcards(end_, text);
}

std::expected<PolicyText, std::string> PolicyText::with_variables(std::string_view text) {
  return Reader(text).read();
}

std::size_t PolicyText::footprint() const {
  std::size_t bytes = sizeof(PolicyText) + heap_bytes(written_) + heap_bytes(end_) +
                      variables_.capacity() * sizeof(Variable);
  for (const Variable& variable : variables_)
    bytes += heap_bytes(variable.before) + heap_bytes(variable.key) +
             (variable.otherwise ? heap_bytes(*variable.otherwise) : 0);
  return bytes;
}

Pattern PolicyText::any_value() const {
  Pattern pattern;
  for (const Variable& variable : variables_) pattern += variable.before + kAnyText;
  return pattern + end_;
}

std::vector<std::string_view> PolicyText::keys() const {
  std::vector<std::string_view> keys;
  for (const Variable& variable : variables_) keys.push_back(variable.key);
  return keys;
}

std::vector<std::string_view> PolicyText::needed_keys() const {
  std::vector<std::string_view> keys;
  for (const Variable& variable : variables_)
    if (!variable.otherwise) keys.push_back(variable.key);
  return keys;
}

const Pattern* PolicyText::resolve(const PolicyContext& context, std::size_t compared_size,
                                   Pattern& room) const {
  if (variables_.empty()) return &end_;
  room.clear();
  std::size_t put_in = 0;
  for (const Variable& variable : variables_) {
    const std::string* value = value_of(context, variable.key);
    if (value == nullptr && variable.otherwise) value = &*variable.otherwise;
    if (value == nullptr || value->size() > compared_size - put_in) return nullptr;
    put_in += value->size();
    room += variable.before;
    append_literally(room, *value);
  }
  room += end_;
  return &room;
}

}  // namespace stanchion::policy

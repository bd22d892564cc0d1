#include "settings/hocon.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace stanchion::settings {
namespace {

constexpr int kDepthMax = 32;
constexpr std::size_t kSizeMax = 1 << 20;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

void merge(HoconObject& into, std::string key, HoconValue value) {
  HoconValue* existing = into.find(key);
  if (existing == nullptr) {
    into.members.emplace_back(std::move(key), std::move(value));
    return;
  }
  auto* old_object = std::get_if<HoconObject>(&existing->value);
  auto* new_object = std::get_if<HoconObject>(&value.value);
  if (old_object == nullptr || new_object == nullptr) {
    *existing = std::move(value);
    return;
  }
  for (auto& [name, member] : new_object->members)
    merge(*old_object, std::move(name), std::move(member));
}

// `a.b.c = v` means `a { b { c = v } }`.
void put(HoconObject& into, std::vector<std::string> path, HoconValue value) {
  while (path.size() > 1) {
    HoconObject wrapper;
    wrapper.members.emplace_back(std::move(path.back()), std::move(value));
    value = HoconValue{std::move(wrapper)};
    path.pop_back();
  }
  merge(into, std::move(path.front()), std::move(value));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Hocon> parse() {
    skip_space(true);
    const bool braced = take('{');
    Status read = read_members(hocon_.root, braced, 0);
    if (!read) return std::unexpected(read.error());
    skip_space(true);
    if (at_ < text_.size()) return wrong("there is something after the end");
    return std::move(hocon_);
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    advance();
    return true;
  }
  bool starts_with(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  bool at_comment() const { return peek() == '#' || starts_with("//"); }
  std::unexpected<Failure> wrong(std::string_view what) const {
    return fail(fmt::format("line {}: {}", line_, what));
  }
  void note(std::string_view what) {
    hocon_.notes.push_back(fmt::format("line {}: {}", line_, what));
  }

  // Skips blanks and comments; also line ends and commas if `lines`.
  void skip_space(bool lines) {
    while (!done()) {
      if (at_comment()) {
        while (!done() && peek() != '\n') advance();
      } else if (is_blank(peek()) || (lines && (peek() == '\n' || peek() == ','))) {
        advance();
      } else {
        return;
      }
    }
  }

  Status read_members(HoconObject& object, bool braced, int depth) {
    if (depth > kDepthMax) return wrong("this is nested too deeply");
    while (true) {
      skip_space(true);
      if (done()) return braced ? Status(wrong("a } is missing")) : Status();
      if (braced && take('}')) return {};
      if (starts_with("include ") || starts_with("include\t") || starts_with("include\"")) {
        note("an include is not followed");
        while (!done() && peek() != '\n') advance();
        continue;
      }
      auto path = read_path();
      if (!path) return std::unexpected(path.error());
      auto value = read_member_value(depth);
      if (!value) return std::unexpected(value.error());
      put(object, std::move(*path), std::move(*value));
    }
  }

  Result<HoconValue> read_member_value(int depth) {
    skip_space(false);
    if (peek() == '{') return read_value(depth);
    if (starts_with("+=")) return wrong("+= is not understood here");
    if (!take('=') && !take(':')) return wrong("a key needs = or : or { after it");
    while (skip_space(false), peek() == '\n') advance();
    return read_value(depth);
  }

  Result<std::vector<std::string>> read_path() {
    std::vector<std::string> path(1);
    bool any = false;
    while (!done()) {
      const char c = peek();
      if (c == '"') {
        auto part = read_quoted();
        if (!part) return std::unexpected(part.error());
        path.back() += *part;
        any = true;
      } else if (c == '.') {
        advance();
        path.emplace_back();
      } else if (std::string_view("=:{}[],\n#+$").find(c) != std::string_view::npos) {
        break;
      } else {
        path.back() += c;
        any = any || !is_blank(c);
        advance();
      }
    }
    while (!path.back().empty() && is_blank(path.back().back())) path.back().pop_back();
    const auto is_empty = [](const std::string& part) { return part.empty(); };
    if (!any || std::ranges::any_of(path, is_empty)) return wrong("a key is missing");
    if (path.size() > static_cast<std::size_t>(kDepthMax)) return wrong("this key is too long");
    return path;
  }

  Result<HoconValue> read_value(int depth) {
    if (peek() == '{') {
      advance();
      HoconObject object;
      RETURN_IF_FAILED(read_members(object, true, depth + 1));
      return HoconValue{std::move(object)};
    }
    if (peek() == '[') return read_array(depth + 1);
    return read_text();
  }

  Result<HoconValue> read_array(int depth) {
    if (depth > kDepthMax) return wrong("this is nested too deeply");
    advance();
    HoconArray array;
    while (true) {
      skip_space(true);
      if (done()) return wrong("a ] is missing");
      if (take(']')) return HoconValue{std::move(array)};
      auto value = read_value(depth);
      if (!value) return value;
      array.push_back(std::move(*value));
    }
  }

  // Quoted and bare pieces up to the end of the line or of the enclosing object.
  Result<HoconValue> read_text() {
    std::string out;
    std::size_t keep = 0;  // Trailing blanks are dropped.
    bool any = false;
    while (!done() && !at_comment() &&
           std::string_view(",\n}]").find(peek()) == std::string_view::npos) {
      if (peek() == '"') {
        auto piece = read_quoted();
        if (!piece) return std::unexpected(piece.error());
        out += *piece;
        keep = out.size();
        any = true;
        continue;
      }
      if (std::string_view("{[=").find(peek()) != std::string_view::npos)
        return wrong(fmt::format("an unexpected {}", peek()));
      if (starts_with("${")) {
        note("a substitution is not resolved");
        while (!done() && peek() != '}' && peek() != '\n') out += take_char();
        if (peek() != '}') return wrong("a } is missing");
        out += take_char();
        keep = out.size();
        any = true;
        continue;
      }
      const char c = take_char();
      out += c;
      if (!is_blank(c)) {
        keep = out.size();
        any = true;
      }
    }
    if (!any) return wrong("a value is missing");
    out.resize(keep);
    return HoconValue{std::move(out)};
  }

  char take_char() {
    const char c = peek();
    advance();
    return c;
  }

  Result<std::string> read_quoted() {
    if (starts_with("\"\"\"")) return read_triple_quoted();
    advance();
    std::string out;
    while (!done() && peek() != '"' && peek() != '\n') {
      char c = take_char();
      if (c == '\\') {
        const auto escaped = unescape(peek());
        if (!escaped) return wrong("this escape is not understood");
        advance();
        c = *escaped;
      }
      out += c;
    }
    if (!take('"')) return wrong("a \" is missing");
    return out;
  }

  Result<std::string> read_triple_quoted() {
    const std::size_t end = text_.find("\"\"\"", at_ + 3);
    if (end == std::string_view::npos) return wrong("\"\"\" is missing");
    std::string out(text_.substr(at_ + 3, end - at_ - 3));
    while (at_ < end + 3) advance();
    return out;
  }

  static std::optional<char> unescape(char c) {
    switch (c) {
      case '"':
      case '\\':
      case '/':
        return c;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      default:
        return std::nullopt;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  Hocon hocon_;
};

}  // namespace

HoconValue* HoconObject::find(std::string_view key) {
  const auto found =
      std::ranges::find(members, key, [](const auto& m) -> std::string_view { return m.first; });
  return found == members.end() ? nullptr : &found->second;
}

const HoconValue* HoconObject::find(std::string_view key) const {
  return const_cast<HoconObject*>(this)->find(key);
}

Result<Hocon> parse_hocon(std::string_view text) {
  if (text.size() > kSizeMax) return fail(fmt::format("this is larger than {} bytes", kSizeMax));
  return Parser(text).parse();
}

}  // namespace stanchion::settings

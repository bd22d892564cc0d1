#include "tests/scenario/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "base/text.h"

namespace stanchion::scenario {
namespace {

[[noreturn]] void complain(const std::string& what) {
  throw std::runtime_error(what);
}

char unescape(std::string_view text, std::size_t& i) {
  switch (text[i++]) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'x': {
      const auto byte = from_hex(text.substr(i, 2));
      if (!byte || byte->size() != 1) complain("\\x takes two hex digits");
      i += 2;
      return byte->front();
    }
    default:
      return text[i - 1];
  }
}

// A value from text[i] to the next space outside of quotes.
std::string read_value(std::string_view text, std::size_t& i) {
  std::string out;
  char quote = 0;
  while (i < text.size() && (quote != 0 || text[i] != ' ')) {
    const char c = text[i++];
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    } else if (c == '\\' && quote == '"' && i < text.size()) {
      out.push_back(unescape(text, i));
    } else {
      out.push_back(c);
    }
  }
  if (quote != 0) complain("a quote is not closed");
  return out;
}

}  // namespace

Arguments::Arguments(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      ++i;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \"'", i), text.size());
    const std::size_t equals = text.find('=', i);
    Word word;
    if (equals < end) {
      word.name = text.substr(i, equals - i);
      i = equals + 1;
    }
    word.value = read_value(text, i);
    words_.push_back(std::move(word));
  }
}

std::string Arguments::bare(std::string_view what) {
  const auto found = std::ranges::find(words_, "", &Word::name);
  if (found == words_.end()) complain(fmt::format("{} is missing", what));
  std::string value = std::move(found->value);
  words_.erase(found);
  return value;
}

std::vector<std::string> Arguments::all_bare() {
  std::vector<std::string> out;
  std::erase_if(words_, [&](Word& word) {
    if (!word.name.empty()) return false;
    out.push_back(std::move(word.value));
    return true;
  });
  return out;
}

std::optional<std::string> Arguments::take(std::string_view name) {
  const auto found = std::ranges::find(words_, name, &Word::name);
  if (found == words_.end()) return std::nullopt;
  std::string value = std::move(found->value);
  words_.erase(found);
  return value;
}

std::optional<std::int64_t> Arguments::take_number(std::string_view name) {
  const auto text = take(name);
  if (!text) return std::nullopt;
  return std::stoll(*text);
}

std::vector<Word> Arguments::take_prefixed(std::string_view prefix) {
  std::vector<Word> out;
  std::erase_if(words_, [&](Word& word) {
    if (word.name.empty() || !word.name.starts_with(prefix)) return false;
    word.name.erase(0, prefix.size());
    out.push_back(std::move(word));
    return true;
  });
  return out;
}

std::vector<Arguments> Arguments::split() {
  std::vector<Arguments> out;
  std::vector<Word> part;
  for (Word& word : words_) {
    if (word.name.empty() && word.value == "/") {
      out.push_back(Arguments(std::exchange(part, {})));
    } else {
      part.push_back(std::move(word));
    }
  }
  if (!part.empty()) out.push_back(Arguments(std::move(part)));
  words_.clear();
  return out;
}

Duration parse_duration(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_decimal(text.substr(0, digits));
  if (!number) complain(fmt::format("{} is not a duration", text));
  const auto count = static_cast<std::int64_t>(*number);
  const std::string_view unit = text.substr(digits);
  if (unit == "ms") return std::chrono::milliseconds(count);
  if (unit == "s") return std::chrono::seconds(count);
  if (unit == "m") return std::chrono::minutes(count);
  if (unit == "h") return std::chrono::hours(count);
  if (unit == "d") return std::chrono::hours(24 * count);
  complain(fmt::format("{} is not a duration", text));
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace stanchion::scenario

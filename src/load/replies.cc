#include "load/replies.h"

#include <array>
#include <utility>

namespace stanchion::load {
namespace {

void take_field(ReplyRow& row, std::string_view name, std::string_view value) {
  if (name == "Body") {
    row.body = value;
  } else if (name == "MD5OfBody" || name == "MD5OfMessageBody") {
    row.md5 = value;
  } else if (name == "ReceiptHandle") {
    row.receipt = value;
  } else if (name == "Id") {
    row.id = value;
  } else if (name == "SequenceNumber") {
    row.sequence = value;
  }
}

// Scans JSON once, looking only at strings and brackets. It trusts that the rest of the text is
// JSON; bytes beyond the end are never read.
class JsonWalk {
 public:
  explicit JsonWalk(std::string_view text) : text_(text) {}

  // The next of { } [ ] : or " (then value() is the string), or 0 at the end.
  char next() {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      switch (c) {
        case '{':
        case '}':
        case '[':
        case ']':
        case ':':
          return c;
        case '"':
          return take_string() ? c : '\0';
        default:
          break;
      }
    }
    return '\0';
  }

  std::string_view value() const { return value_; }
  std::size_t at() const { return at_; }

 private:
  bool take_string() {
    const std::size_t begin = at_;
    for (std::size_t end = text_.find('"', at_); end != std::string_view::npos;
         end = text_.find('"', end + 1)) {
      std::size_t slashes = 0;
      while (slashes < end - begin && text_[end - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 1) continue;
      value_ = text_.substr(begin, end - begin);
      at_ = end + 1;
      return true;
    }
    at_ = text_.size();
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view value_;
};

}  // namespace

bool ReplyReader::read(Protocol protocol, std::string_view text) {
  rows_.clear();
  failed_ = 0;
  first_failure_ = {};
  return protocol == Protocol::kJson ? read_json(text) : read_xml(text);
}

void ReplyReader::finish_row(const ReplyRow& row, bool failed, std::string_view source) {
  if (!failed) return rows_.push_back(row);
  if (failed_++ == 0) first_failure_ = source;
}

bool ReplyReader::read_json(std::string_view text) {
  JsonWalk walk(text);
  ReplyRow top, row;
  int depth = 0;  // Of objects: 1 is the answer, 2 an entry.
  std::string_view list, last, key;
  std::size_t row_begin = 0;
  bool key_pending = false;
  while (const char c = walk.next()) {
    switch (c) {
      case '{':
        if (++depth == 2) {
          row = {};
          row_begin = walk.at() - 1;
        }
        key_pending = false;
        break;
      case '}':
        if (depth == 2)
          finish_row(row, list == "Failed", text.substr(row_begin, walk.at() - row_begin));
        if (--depth == 0) {
          if (!top.md5.empty()) rows_.push_back(top);
          return true;
        }
        break;
      case '[':
        if (depth == 1) list = key;
        key_pending = false;
        break;
      case ':':
        key = last;
        key_pending = true;
        break;
      case '"':
        last = walk.value();
        if (std::exchange(key_pending, false) && (depth == 1 || depth == 2))
          take_field(depth == 1 ? top : row, key, last);
        break;
      default:
        break;
    }
  }
  return text.empty() && depth == 0;
}

bool ReplyReader::read_xml(std::string_view text) {
  ReplyRow row;
  std::size_t row_begin = 0;
  std::string_view opened;
  std::size_t value_begin = 0;
  bool seen = false;
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return false;
    const bool closes = at + 1 < text.size() && text[at + 1] == '/';
    std::string_view name = text.substr(at + (closes ? 2 : 1), end - at - (closes ? 2 : 1));
    name = name.substr(0, name.find_first_of(" /"));
    const bool is_row = name == "Message" || name == "SendMessageResult" ||
                        name.ends_with("BatchResultEntry") || name == "BatchResultErrorEntry";
    if (!closes) {
      seen = true;
      opened = name;
      value_begin = end + 1;
      if (is_row) {
        row = {};
        row_begin = at;
      }
    } else if (is_row && name != opened) {
      finish_row(row, name == "BatchResultErrorEntry", text.substr(row_begin, end + 1 - row_begin));
    } else if (name == opened) {
      take_field(row, name, text.substr(value_begin, at - value_begin));
    }
    at = end + 1;
  }
  return seen;
}

std::string_view find_value(Protocol protocol, std::string_view text, std::string_view name) {
  if (protocol == Protocol::kJson) {
    JsonWalk walk(text);
    std::string_view last;
    bool wanted = false;
    while (const char c = walk.next()) {
      if (c == '"' && std::exchange(wanted, false)) return walk.value();
      if (c == '"') last = walk.value();
      if (c == ':') wanted = last == name;
    }
    return {};
  }
  const std::string open = "<" + std::string(name) + ">";
  const std::size_t begin = text.find(open);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = text.find('<', begin + open.size());
  return text.substr(begin + open.size(), end - begin - open.size());
}

std::string decode_xml(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string out;
  while (!text.empty()) {
    bool decoded = false;
    for (const auto& [entity, character] : kEntities) {
      if (!text.starts_with(entity)) continue;
      out.push_back(character);
      text.remove_prefix(entity.size());
      decoded = true;
      break;
    }
    if (decoded) continue;
    out.push_back(text.front());
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace stanchion::load

// Three writers with one interface, so that one description of a reply serves all of them.
//
//   text(name, value)             a string that may hold anything
//   token(name, value)            a string that needs no escaping: hex digits, decimals, ids
//   number(name, value), boolean(name, value)
//   texts(name, items, put)       a list of strings; put(item, out) appends one
//   structures(name, items, each) a list of structures; each(item) writes the members of one
//   map(name, entry, items)       a map of strings: items are pairs
//   structure_map(name, items, key_of, each)
//   none(name)                    a member that this reply does not have
//
// In JSON and XML, absent members and empty lists and maps are not written. In the JSON of Query
// they are null, and maps are lists of pairs.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

#include "wire/escape.h"

namespace stanchion::wire {

// The names of a member in JSON, in XML, and in the JSON of Query.
struct Name {
  consteval Name(const char* all) : json(all), xml(all), query_json(all) {}
  constexpr Name(std::string_view json_name, std::string_view xml_name)
      : Name(json_name, xml_name, json_name) {}
  constexpr Name(std::string_view json_name, std::string_view xml_name,
                 std::string_view query_json_name)
      : json(json_name), xml(xml_name), query_json(query_json_name) {}
  std::string_view json;
  std::string_view xml;
  std::string_view query_json;
};

// The names of key and value of a map's entries in Query.
struct EntryName {
  std::string_view key;
  std::string_view value;
};

template <std::integral T>
void append_decimal(std::string& out, T value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// Something that can be appended to text: a string, or a type that writes itself.
template <class T>
concept WritesItself = requires(const T& part, char* to) {
  part.write(to);
};

inline std::size_t size_of_part(std::string_view part) {
  return part.size();
}
inline char* write_part(char* to, std::string_view part) {
  return std::ranges::copy(part, to).out;
}
// The size of a literal is known at compile time.
template <std::size_t N>
constexpr std::size_t size_of_part(const char (&)[N]) {
  return N - 1;
}
template <std::size_t N>
char* write_part(char* to, const char (&part)[N]) {
  return std::copy_n(part, N - 1, to);
}
std::size_t size_of_part(const WritesItself auto& part) {
  return part.size();
}
char* write_part(char* to, const WritesItself auto& part) {
  return part.write(to);
}

// Grows the output once: most of the time for a reply goes into appending small pieces.
void append_parts(std::string& out, const auto&... parts) {
  const std::size_t before = out.size();
  const std::size_t end = before + (size_of_part(parts) + ...);
  out.resize_and_overwrite(end, [&](char* to, std::size_t) {
    to += before;
    ((to = write_part(to, parts)), ...);
    return end;  // Not the size that is passed: g++ 12 passes the capacity.
  });
}

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin() { open('{'); }
  void end() { close('}'); }

  void text(Name name, std::string_view value) {
    key(name.json);
    quoted(value);
  }
  void token(Name name, const auto& value) {
    append_parts(out_, quote_behind_others(), name.json, "\":\"", value, "\"");
    first_ = false;
  }
  template <std::integral T>
  void number(Name name, T value) {
    key(name.json);
    append_decimal(out_, value);
  }
  void boolean(Name name, bool value) {
    key(name.json);
    out_ += value ? "true" : "false";
  }
  void empty_list(Name name) {
    key(name.json);
    out_ += "[]";
  }
  void none(Name) {}

  template <class Items, class Put>
  void texts(Name name, const Items& items, const Put& put) {
    list(name, items, [&](const auto& item) {
      scratch_.clear();
      put(item, scratch_);
      comma();
      quoted(scratch_);
    });
  }

  template <class Items, class Each>
  void structures(Name name, const Items& items, const Each& each) {
    list(name, items, [&](const auto& item) {
      comma();
      open('{');
      each(item);
      close('}');
    });
  }

  template <class Items>
  void map(Name name, EntryName, const Items& items) {
    if (items.empty()) return;
    key(name.json);
    open('{');
    for (const auto& [entry_key, value] : items) {
      escaped_key(entry_key);
      quoted(value);
    }
    close('}');
  }

  template <class Items, class KeyOf, class Each>
  void structure_map(Name name, const Items& items, const KeyOf& key_of, const Each& each) {
    if (items.empty()) return;
    key(name.json);
    open('{');
    for (const auto& item : items) {
      escaped_key(key_of(item));
      open('{');
      each(item);
      close('}');
    }
    close('}');
  }

 protected:
  template <class Items, class Each>
  void list(Name name, const Items& items, const Each& each) {
    if (items.empty()) return;
    key(name.json);
    open('[');
    for (const auto& item : items) each(item);
    close(']');
  }

  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void open(char bracket) {
    out_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    first_ = false;
  }
  std::string_view quote_behind_others() const {
    return std::string_view(",\"").substr(first_ ? 1 : 0);
  }
  void key(std::string_view name) {
    append_parts(out_, quote_behind_others(), name, "\":");
    first_ = false;
  }
  void escaped_key(std::string_view name) {
    comma();
    quoted(name);
    out_ += ':';
  }
  void quoted(std::string_view value) {
    out_ += '"';
    append_json_escaped(out_, value);
    out_ += '"';
  }

  std::string& out_;

 private:
  std::string scratch_;
  bool first_ = true;
};

class QueryJsonWriter : public JsonWriter {
 public:
  using JsonWriter::JsonWriter;

  void none(Name name) {
    key(name.query_json);
    out_ += "null";
  }
  void empty_list(Name) {}  // texts() reports that itself.

  template <class Items, class Put>
  void texts(Name name, const Items& items, const Put& put) {
    if (items.empty()) return none(name);
    JsonWriter::texts({name.query_json, name.xml}, items, put);
  }

  template <class Items, class Each>
  void structures(Name name, const Items& items, const Each& each) {
    if (items.empty()) return none(name);
    JsonWriter::structures({name.query_json, name.xml}, items, each);
  }

  template <class Items>
  void map(Name name, EntryName entry, const Items& items) {
    structures(name, items, [&](const auto& item) {
      key(entry.key);
      quoted(item.first);
      key(entry.value);
      quoted(item.second);
    });
  }

  template <class Items, class KeyOf, class Each>
  void structure_map(Name name, const Items& items, const KeyOf& key_of, const Each& each) {
    structures(name, items, [&](const auto& item) {
      key("Name");
      quoted(key_of(item));
      key("Value");
      open('{');
      each(item);
      close('}');
    });
  }
};

class XmlWriter {
 public:
  explicit XmlWriter(std::string& out) : out_(out) {}

  void open(std::string_view name) { out_.append("<", 1).append(name).append(">", 1); }
  void close(std::string_view name) { out_.append("</", 2).append(name).append(">", 1); }

  void text(Name name, std::string_view value) { element(name.xml, value); }
  void token(Name name, const auto& value) {
    open(name.xml);
    append_parts(out_, value);
    close(name.xml);
  }
  template <std::integral T>
  void number(Name name, T value) {
    open(name.xml);
    append_decimal(out_, value);
    close(name.xml);
  }
  void boolean(Name name, bool value) { token(name, value ? "true" : "false"); }
  void empty_list(Name) {}
  void none(Name) {}

  template <class Items, class Put>
  void texts(Name name, const Items& items, const Put& put) {
    for (const auto& item : items) {
      scratch_.clear();
      put(item, scratch_);
      element(name.xml, scratch_);
    }
  }

  template <class Items, class Each>
  void structures(Name name, const Items& items, const Each& each) {
    for (const auto& item : items) {
      open(name.xml);
      each(item);
      close(name.xml);
    }
  }

  template <class Items>
  void map(Name name, EntryName entry, const Items& items) {
    for (const auto& [key, value] : items) {
      open(name.xml);
      element(entry.key, key);
      element(entry.value, value);
      close(name.xml);
    }
  }

  template <class Items, class KeyOf, class Each>
  void structure_map(Name name, const Items& items, const KeyOf& key_of, const Each& each) {
    for (const auto& item : items) {
      open(name.xml);
      element("Name", key_of(item));
      open("Value");
      each(item);
      close("Value");
      close(name.xml);
    }
  }

 private:
  void element(std::string_view name, std::string_view value) {
    open(name);
    append_xml_escaped(out_, value);
    close(name);
  }

  std::string& out_;
  std::string scratch_;
};

}  // namespace stanchion::wire

// CBOR (RFC 8949), as far as the protocol RPC v2 CBOR needs it: reading into the same values that a
// JSON text is read into, and writing.
//
// Read are definite and indefinite lengths, all integers and floats, true, false, null and
// undefined, and any tag, whose content stands for it. Depth and number of values are limited
// before anything is kept.
#pragma once

#include <bit>
#include <boost/json/value.hpp>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/error.h"

namespace stanchion::wire {

// Exactly one value, and nothing behind it.
Answer<boost::json::value> decode_cbor(std::string_view bytes);

// Writes one value after the other; a map is opened before its members are known, and closed after
// the last one.
class CborWriter {
 public:
  explicit CborWriter(std::string& out) : out_(out) {}

  void open_map() { open_.push_back({out_.size(), 0}); }
  void close_map();
  void array(std::size_t elements) { head(4, elements); }

  void key(std::string_view name);
  void text(std::string_view value);
  void real(double value);
  void boolean(bool value) { out_.push_back(static_cast<char>(value ? 0xF5 : 0xF4)); }
  // Tag 1: seconds since 1970, whole ones as an integer.
  void timestamp(Instant at);

 private:
  struct Map {
    std::size_t begin;
    std::size_t members;
  };
  void head(unsigned major, std::uint64_t argument);
  static std::string head_of(unsigned major, std::uint64_t argument);

  std::string& out_;
  std::vector<Map> open_;
};

}  // namespace stanchion::wire

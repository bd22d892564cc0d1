// Writing and reading bytes in the one encoding used on disk and between shards: little-endian
// fixed numbers, LEB128 varints, and strings as varint length + bytes.
//
// ByteReader never reads past its input: after the first bad read it is failed, every later read
// returns zero or empty, and the caller asks ok() once at the end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stanchion {

static_assert(std::endian::native == std::endian::little,
              "fixed numbers are written as they lie in memory");

class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u32(std::uint32_t v) { fixed(v); }
  void u64(std::uint64_t v) { fixed(v); }
  void i64(std::int64_t v) { fixed(v); }

  void varint(std::uint64_t v) {
    char buffer[10];
    std::size_t size = 0;
    while (v >= 0x80) {
      buffer[size++] = static_cast<char>(v | 0x80);
      v >>= 7;
    }
    buffer[size++] = static_cast<char>(v);
    out_.append(buffer, size);
  }

  void text(std::string_view s) {
    varint(s.size());
    raw(s);
  }

  void raw(std::string_view s) { out_.append(s); }

 private:
  template <class T>
  void fixed(T v) {
    char buffer[sizeof v];
    std::memcpy(buffer, &v, sizeof v);
    out_.append(buffer, sizeof v);
  }

  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}

  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }
  std::size_t remaining() const { return in_.size(); }

  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::int64_t i64() { return fixed<std::int64_t>(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = u8();
      if (!ok_) return 0;
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return failed<std::uint64_t>();
  }

  std::string_view text() { return raw(varint()); }

  std::string_view raw(std::uint64_t size) {
    if (!ok_ || size > in_.size()) return failed<std::string_view>();
    const std::string_view taken = in_.substr(0, static_cast<std::size_t>(size));
    in_.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }

  // A count of elements that each take at least one byte: never more than the bytes that are left,
  // so that a damaged count cannot make the caller reserve memory for it.
  std::size_t count() {
    const std::uint64_t n = varint();
    if (n > in_.size()) return failed<std::size_t>();
    return static_cast<std::size_t>(n);
  }

 private:
  template <class T>
  T fixed() {
    T v{};
    if (!ok_ || in_.size() < sizeof v) return failed<T>();
    std::memcpy(&v, in_.data(), sizeof v);
    in_.remove_prefix(sizeof v);
    return v;
  }

  template <class T>
  T failed() {
    ok_ = false;
    in_ = {};
    return T{};
  }

  std::string_view in_;
  bool ok_ = true;
};

}  // namespace stanchion

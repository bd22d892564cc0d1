#include "link/frame_codec.h"

#include <fmt/format.h>

#include <array>
#include <boost/pfr.hpp>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "link/frame_numbers.h"
#include "model/error_names.h"

namespace stanchion::link {
namespace {

template <class T, template <class...> class Of>
inline constexpr bool kIsA = false;
template <class... Args, template <class...> class Of>
inline constexpr bool kIsA<Of<Args...>, Of> = true;

template <class T>
inline constexpr bool kIsStrong = false;
template <class Tag, class T>
inline constexpr bool kIsStrong<Strong<Tag, T>> = true;

template <class T>
inline constexpr bool kIsBytes = false;
template <std::size_t N>
inline constexpr bool kIsBytes<std::array<std::uint8_t, N>> = true;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out), bytes_(out) {}

  template <class T>
  void fields(const T& structured) {
    constexpr std::size_t kCount = boost::pfr::tuple_size_v<T>;
    static_assert(kCount <= std::numeric_limits<std::uint8_t>::max());
    bytes_.u8(static_cast<std::uint8_t>(kCount));
    members(structured);
  }

 private:
  template <class T>
  void members(const T& structured) {
    boost::pfr::for_each_field(structured, [this](const auto& field) { put(field); });
  }

  // The alternative of a variant, with its size.
  template <class Variant>
  void put_alternative(const Variant& variant) {
    std::visit(
        [this]<class T>(const T& alternative) {
          bytes_.u8(kNumberOf<T>);
          const std::size_t at = out_.size();
          bytes_.u32(0);
          fields(alternative);
          const auto size = static_cast<std::uint32_t>(out_.size() - at - sizeof(std::uint32_t));
          std::memcpy(out_.data() + at, &size, sizeof size);
        },
        variant);
  }

  template <class T>
  void put(const T& v) {
    if constexpr (std::is_same_v<T, ErrorCode>) {
      bytes_.text(name_of(v));  // The table of errors is in no order.
    } else if constexpr (std::is_enum_v<T>) {
      bytes_.u8(static_cast<std::uint8_t>(v));
    } else if constexpr (std::is_integral_v<T>) {
      bytes_.varint(static_cast<std::uint64_t>(v));
    } else if constexpr (kIsStrong<T>) {
      bytes_.varint(v.value());
    } else if constexpr (std::is_same_v<T, std::string>) {
      bytes_.text(v);
    } else if constexpr (std::is_same_v<T, Instant>) {
      bytes_.varint(static_cast<std::uint64_t>(to_millis(v)));
    } else if constexpr (std::is_same_v<T, Duration>) {
      bytes_.varint(static_cast<std::uint64_t>(v.count()));
    } else if constexpr (std::is_same_v<T, ContentPtr>) {
      CHECK(v != nullptr, "a message that another node is told of has its content");
      bytes_.text(v->encoded());
    } else if constexpr (kIsBytes<T>) {
      bytes_.raw({reinterpret_cast<const char*>(v.data()), v.size()});
    } else {
      put_compound(v);
    }
  }

  template <class T>
  void put_compound(const T& v) {
    if constexpr (std::is_same_v<T, Request>) {
      put_alternative(v);
    } else if constexpr (std::is_same_v<T, Reply>) {
      bytes_.u8(v.has_value());
      if (v) {
        put_alternative(*v);
      } else {
        members(v.error());
      }
    } else if constexpr (std::is_same_v<T, StringMap>) {
      bytes_.varint(v.size());
      for (const auto& [key, value] : v) bytes_.text(key), bytes_.text(value);
    } else if constexpr (kIsA<T, std::vector>) {
      bytes_.varint(v.size());
      for (const auto& item : v) put(item);
    } else if constexpr (kIsA<T, std::optional>) {
      bytes_.u8(v.has_value());
      if (v) put(*v);
    } else {
      members(v);
    }
  }

  std::string& out_;
  ByteWriter bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  bool ok() const { return ok_ && in_.ok(); }
  std::uint8_t number() { return in_.u8(); }

  // Everything that is left: those fields that the writer knew and this node knows.
  template <class T>
  void fields(T& structured) {
    const std::size_t written = in_.u8();
    boost::pfr::for_each_field(structured, [&](auto& field, std::size_t index) {
      if (index < written) {
        take(field);
      } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Transfer>) {
        ok_ = false;  // The one without a default: it has a message.
      }
    });
    // More is there only if the writer knew more.
    if (written <= boost::pfr::tuple_size_v<T> && !in_.at_end()) ok_ = false;
  }

  // The alternative with this number, which takes up all that is left. False if there is none.
  template <class Variant, std::size_t I = 0>
  bool alternative(std::uint8_t wanted, Variant& out) {
    if constexpr (I == std::variant_size_v<Variant>) {
      return false;
    } else {
      using T = std::variant_alternative_t<I, Variant>;
      if (kNumberOf<T> != wanted) return alternative<Variant, I + 1>(wanted, out);
      fields(out.template emplace<T>());
      return ok();
    }
  }

 private:
  template <class T>
  void members(T& structured) {
    boost::pfr::for_each_field(structured, [this](auto& field) { take(field); });
  }

  template <class Variant>
  void take_alternative(Variant& out) {
    const std::uint8_t wanted = in_.u8();
    Reader inner(in_.raw(in_.u32()));
    if (!ok() || !inner.alternative(wanted, out)) ok_ = false;
  }

  template <class T>
  T whole() {
    const std::uint64_t v = in_.varint();
    if constexpr (std::is_signed_v<T>) {
      static_assert(sizeof(T) == sizeof v);
    } else if (v > std::numeric_limits<T>::max()) {
      ok_ = false;
    }
    return static_cast<T>(v);
  }

  bool flag() {
    const std::uint8_t v = in_.u8();
    if (v > 1) ok_ = false;
    return v == 1;
  }

  void take_content(ContentPtr& content) {
    auto parsed = Content::parse(in_.text());
    if (!parsed) {
      ok_ = false;
      return;
    }
    content = std::move(*parsed);
  }

  template <class T>
  void take(T& v) {
    if constexpr (std::is_same_v<T, ErrorCode>) {
      // Of a newer node's error no more is known than that something is wrong.
      v = error_of_name(in_.text()).value_or(ErrorCode::kInternalFailure);
    } else if constexpr (std::is_enum_v<T>) {
      v = static_cast<T>(in_.u8());
      if (!is_known(v)) ok_ = false;
    } else if constexpr (std::is_same_v<T, bool>) {
      v = flag();
    } else if constexpr (std::is_integral_v<T>) {
      v = whole<T>();
    } else if constexpr (kIsStrong<T>) {
      v = T(whole<typename T::Value>());
    } else if constexpr (std::is_same_v<T, std::string>) {
      v = in_.text();
    } else if constexpr (std::is_same_v<T, Instant>) {
      v = from_millis(whole<std::int64_t>());
    } else if constexpr (std::is_same_v<T, Duration>) {
      v = Duration(whole<std::int64_t>());
    } else if constexpr (std::is_same_v<T, ContentPtr>) {
      take_content(v);
    } else if constexpr (kIsBytes<T>) {
      const std::string_view raw = in_.raw(v.size());
      if (raw.size() == v.size()) std::memcpy(v.data(), raw.data(), v.size());
    } else {
      take_compound(v);
    }
  }

  // Of a list or map.
  std::size_t count() {
    const std::size_t n = in_.count();
    if (n > kListMax) ok_ = false;
    return n;
  }

  template <class T>
  void take_compound(T& v) {
    if constexpr (std::is_same_v<T, Request>) {
      take_alternative(v);
    } else if constexpr (std::is_same_v<T, Reply>) {
      if (flag()) {
        take_alternative(v.emplace());
      } else {
        Error error{};
        members(error);
        v = std::unexpected(std::move(error));
      }
    } else if constexpr (std::is_same_v<T, StringMap>) {
      for (std::size_t n = count(); n > 0 && ok(); --n) {
        std::string key(in_.text());
        v[std::move(key)] = in_.text();
      }
    } else if constexpr (kIsA<T, std::vector>) {
      for (std::size_t n = count(); n > 0 && ok(); --n) take(v.emplace_back());
    } else if constexpr (kIsA<T, std::optional>) {
      if (!flag()) return;
      typename T::value_type value{};
      take(value);
      v = std::move(value);
    } else {
      members(v);
    }
  }

  ByteReader in_;
  bool ok_ = true;
};

}  // namespace

bool encode_frame(const fleet::Frame& frame, std::string& out) {
  const std::size_t at = out.size();
  ByteWriter head(out);
  head.u32(0);
  std::visit(
      [&]<class T>(const T& one) {
        head.u8(kNumberOf<T>);
        Writer(out).fields(one);
      },
      frame);
  const std::size_t size = out.size() - at - kFrameHeadSize;
  if (size > kFrameSizeMax) {
    out.resize(at);
    return false;
  }
  const auto written = static_cast<std::uint32_t>(size);
  std::memcpy(out.data() + at, &written, sizeof written);
  return true;
}

Result<std::size_t> frame_size(std::string_view head) {
  ByteReader reader(head);
  const std::size_t size = reader.u32();
  if (!reader.ok() || size < 2 || size > kFrameSizeMax)
    return fail(fmt::format("a frame of {} bytes, of at most {}", size, kFrameSizeMax));
  return size;
}

Result<fleet::Frame> decode_frame(std::string_view bytes) {
  Reader reader(bytes);
  const std::uint8_t number = reader.number();
  fleet::Frame frame;
  if (!reader.alternative(number, frame))
    return fail(fmt::format("frame number {} is unknown or damaged", number));
  return frame;
}

}  // namespace stanchion::link

// Frames with random members, whatever members there are, and their comparison.
#pragma once

#include <algorithm>
#include <array>
#include <boost/pfr.hpp>
#include <concepts>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleet/transport.h"
#include "model/content.h"

namespace stanchion::link {

class FrameMaker {
 public:
  explicit FrameMaker(std::uint64_t seed) : random_(seed) {}

  // Alternative `I` of the variant, with every member set to something.
  template <class Variant, std::size_t I>
  Variant make() {
    Variant variant;
    fill(variant.template emplace<I>());
    return variant;
  }

  template <class T>
  void fill(T& v) {
    if constexpr (std::is_same_v<T, bool>) {
      v = below(2) == 1;
    } else if constexpr (std::is_same_v<T, ErrorCode>) {
      v = static_cast<ErrorCode>(below(kErrorCount));
    } else if constexpr (std::is_same_v<T, PeekedState>) {
      v = static_cast<T>(below(3));
    } else if constexpr (std::is_enum_v<T>) {
      v = static_cast<T>(1);  // A value of every enum.
    } else if constexpr (std::is_integral_v<T>) {
      v = static_cast<T>(random_() >> below(64));
    } else {
      fill_class(v);
    }
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void fill_class(std::string& v) {
    v.clear();
    for (std::size_t n = below(20); n > 0; --n) v.push_back(static_cast<char>(random_()));
  }
  void fill_class(ContentPtr& v) {
    ContentParts parts;
    fill(parts.id.bytes);
    parts.sent = from_millis(static_cast<std::int64_t>(below(1'000'000)));
    std::string body, group;
    fill(body), fill(group);
    parts.body = body;
    parts.group = group;
    v = Content::make(parts);
  }
  template <class Tag, class T>
  void fill_class(Strong<Tag, T>& v) {
    T value{};
    fill(value);
    v = Strong<Tag, T>(value);
  }
  void fill_class(Instant& v) { v = from_millis(static_cast<std::int64_t>(random_())); }
  void fill_class(Duration& v) { v = Duration(static_cast<std::int64_t>(random_())); }
  template <std::size_t N>
  void fill_class(std::array<std::uint8_t, N>& v) {
    for (std::uint8_t& byte : v) byte = static_cast<std::uint8_t>(random_());
  }
  void fill_class(StringMap& v) {
    for (std::size_t n = below(4); n > 0; --n) {
      std::string key;
      fill(key);
      fill(v[key]);
    }
  }
  template <class T>
  void fill_class(std::vector<T>& v) {
    for (std::size_t n = below(4); n > 0; --n) fill(v.emplace_back());
  }
  template <class T>
  void fill_class(std::optional<T>& v) {
    if (below(4) != 0) fill(v.emplace());
  }
  template <class... T>
  void fill_class(std::variant<T...>& v) {
    fill_alternative(v, below(sizeof...(T)), std::index_sequence_for<T...>());
  }
  void fill_class(Reply& v) {
    if (below(4) != 0) return fill(v.emplace());
    Error error{};
    fill(error);
    v = std::unexpected(std::move(error));
  }
  template <class T>
  requires std::is_aggregate_v<T>
  void fill_class(T& structured) {
    boost::pfr::for_each_field(structured, [this](auto& field) { fill(field); });
  }

  template <class Variant, std::size_t... I>
  void fill_alternative(Variant& v, std::size_t index, std::index_sequence<I...>) {
    (void)(... || (I == index && (fill(v.template emplace<I>()), true)));
  }

  std::mt19937_64 random_;
};

// Whether all members are the same.
template <class T>
bool same(const T& a, const T& b);

template <class T>
bool same_members(const T& a, const T& b) {
  bool equal = true;
  boost::pfr::for_each_field(a, [&]<class I>(const auto& field, I) {
    equal = equal && same(field, boost::pfr::get<I::value>(b));
  });
  return equal;
}
inline bool same_class(const ContentPtr& a, const ContentPtr& b) {
  return a->encoded() == b->encoded();
}
template <class T>
bool same_class(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& one, const T& other) { return same(one, other); });
}
template <class T>
bool same_class(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}
template <class... T>
bool same_class(const std::variant<T...>& a, const std::variant<T...>& b) {
  return a.index() == b.index() &&
         std::visit([&]<class U>(const U& one) { return same(one, std::get<U>(b)); }, a);
}
inline bool same_class(const Reply& a, const Reply& b) {
  if (a.has_value() != b.has_value()) return false;
  return a ? same(*a, *b) : a.error() == b.error();
}
template <class T>
bool same_class(const T& a, const T& b) {
  if constexpr (std::equality_comparable<T>) {
    return a == b;
  } else {
    return same_members(a, b);
  }
}
template <class T>
bool same(const T& a, const T& b) {
  return same_class(a, b);
}

inline fleet::Forward forward(Request request) {
  fleet::Forward frame;
  frame.request = std::move(request);
  return frame;
}
inline fleet::Answered answered(Reply reply) {
  fleet::Answered frame;
  frame.reply = std::move(reply);
  return frame;
}

// Every kind of frame, request and reply, each `times`.
inline std::vector<fleet::Frame> all_kinds_of_frames(std::uint64_t seed, int times) {
  FrameMaker maker(seed);
  std::vector<fleet::Frame> frames;
  const auto add_frames = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (frames.push_back(maker.make<fleet::Frame, I>()), ...);
  };
  const auto add_requests = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (frames.push_back(forward(maker.make<Request, I>())), ...);
  };
  const auto add_replies = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (frames.push_back(answered(maker.make<ReplyValue, I>())), ...);
  };
  for (int i = 0; i < times; ++i) {
    add_frames(std::make_index_sequence<std::variant_size_v<fleet::Frame>>());
    add_requests(std::make_index_sequence<std::variant_size_v<Request>>());
    add_replies(std::make_index_sequence<std::variant_size_v<ReplyValue>>());
    frames.push_back(answered(refuse(ErrorCode::kOverLimit, "too many")));
  }
  return frames;
}

}  // namespace stanchion::link

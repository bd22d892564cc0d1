// MD5 of several texts side by side. Each step of MD5 depends on the one before, so a processor is
// mostly idle while it hashes one short text; with one text in each lane of its vector registers it
// hashes a batch in the time of two or three texts. The library that offers this, isa-l_crypto, is
// not in Debian 12.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/digest.h"

namespace stanchion {
namespace {

static_assert(std::endian::native == std::endian::little, "words are loaded as they lie");

constexpr std::size_t kLanes = 16;  // More than the messages of a batch.
constexpr std::size_t kBlock = 64;
constexpr std::size_t kTail = 9;  // The padding: a byte with one bit, and the length.

using Word = std::uint32_t;
using Vector = Word __attribute__((vector_size(kLanes * sizeof(Word))));

constexpr std::array<Word, 64> kSines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

constexpr std::array<std::array<int, 4>, 4> kShifts{
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

struct State {
  Vector a = Vector{} + 0x67452301U, b = Vector{} + 0xefcdab89U, c = Vector{} + 0x98badcfeU,
         d = Vector{} + 0x10325476U;
};
using Words = std::array<Vector, 16>;

template <std::size_t kStep>
[[gnu::always_inline]] inline void step(State& s, const Words& words) {
  constexpr std::size_t kRound = kStep / 16;
  constexpr std::size_t kWord = (std::array<std::size_t, 4>{1, 5, 3, 7}[kRound] * kStep +
                                 std::array<std::size_t, 4>{0, 1, 5, 0}[kRound]) %
                                16;
  constexpr int kShift = kShifts[kRound][kStep % 4];
  Vector mixed;
  if constexpr (kRound == 0) mixed = s.d ^ (s.b & (s.c ^ s.d));
  if constexpr (kRound == 1) mixed = s.c ^ (s.d & (s.b ^ s.c));
  if constexpr (kRound == 2) mixed = s.b ^ s.c ^ s.d;
  if constexpr (kRound == 3) mixed = s.c ^ (s.b | ~s.d);
  const Vector sum = s.a + mixed + words[kWord] + kSines[kStep];
  const Vector turned = s.b + (sum << kShift | sum >> (32 - kShift));
  s = {s.d, turned, s.b, s.c};
}

template <std::size_t... kSteps>
[[gnu::always_inline]] inline void run(State& s, const Words& words,
                                       std::index_sequence<kSteps...>) {
  (step<kSteps>(s, words), ...);
}

// A text, and the last blocks, which hold its end and MD5's padding.
class Lane {
 public:
  explicit Lane(std::string_view text)
      : text_(text),
        whole_(text.size() / kBlock),
        blocks_((text.size() + kTail + kBlock - 1) / kBlock) {
    const std::size_t rest = text.size() % kBlock;
    text.substr(whole_ * kBlock).copy(end_.data(), rest);  // There may be no text at all.
    end_[rest] = static_cast<char>(0x80);
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    std::memcpy(end_.data() + (blocks_ - whole_) * kBlock - sizeof bits, &bits, sizeof bits);
  }

  std::size_t blocks() const { return blocks_; }
  // A lane past its last block may read any block: its result is not used.
  const char* block(std::size_t i) const {
    if (i < whole_) return text_.data() + i * kBlock;
    return end_.data() + (i < blocks_ ? (i - whole_) * kBlock : 0);
  }

 private:
  std::string_view text_;
  std::size_t whole_;
  std::size_t blocks_;
  std::array<char, 2 * kBlock> end_{};
};

// Compiled once for each kind of vector registers that a processor may have. The variant is chosen
// when the program starts, too early for sanitizers.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::target_clones("default", "avx2", "avx512f")]]
#endif
void hash(std::span<const Lane> lanes, std::span<Md5> out) {
  State s;
  const std::size_t blocks = std::ranges::max(lanes, {}, &Lane::blocks).blocks();
  for (std::size_t i = 0; i < blocks; ++i) {
    Words words{};
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const char* block = lanes[lane].block(i);
      for (std::size_t word = 0; word < words.size(); ++word) {
        Word value;
        std::memcpy(&value, block + word * sizeof value, sizeof value);
        words[word][lane] = value;
      }
    }
    const State before = s;
    run(s, words, std::make_index_sequence<64>());
    s = {s.a + before.a, s.b + before.b, s.c + before.c, s.d + before.d};
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (lanes[lane].blocks() != i + 1) continue;
      const std::array<Word, 4> sum{s.a[lane], s.b[lane], s.c[lane], s.d[lane]};
      std::memcpy(out[lane].data(), sum.data(), sizeof sum);
    }
  }
}

}  // namespace

void md5_each(std::span<const std::string_view> texts, std::span<Md5> out) {
  CHECK(texts.size() == out.size(), "a sum for each text");
  while (!texts.empty()) {
    const std::size_t count = std::min(texts.size(), kLanes);
    const auto some = texts.first(count);
    const auto sums = out.first(count);
    std::size_t longest = 0;
    std::size_t all = 0;
    for (const std::string_view text : some) {
      longest = std::max(longest, text.size() + kBlock);
      all += text.size() + kBlock;
    }
    // A lane whose text has ended is idle.
    if (all < 4 * longest) {
      std::ranges::transform(some, sums.begin(), md5);
    } else {
      hash(std::vector<Lane>(some.begin(), some.end()), sums);
    }
    texts = texts.subspan(count);
    out = out.subspan(count);
  }
}

}  // namespace stanchion

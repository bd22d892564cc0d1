// The language of scenario files, one line per step:
//
//   # Why this scenario is here.
//   > send q body="hello there" group=g      a request: verb, queue, name=value …
//   < m1                                     its reply, as many lines as it has
//   > tick 31s                               a directive; it has no reply
//
// tests/scenario/README.md lists the verbs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace stanchion::scenario {

// A word of a request line: `name=value`, or a bare `value` with an empty name.
struct Word {
  std::string name;
  std::string value;
};

// The words after a verb. Values may be quoted: "…" with \n, \t, \xHH, \" and \\, or '…' verbatim.
class Arguments {
 public:
  explicit Arguments(std::string_view text);

  bool done() const { return words_.empty(); }
  const std::vector<Word>& words() const { return words_; }

  // Takes the first bare word; throws if there is none.
  std::string bare(std::string_view what);
  std::vector<std::string> all_bare();

  // Takes the value of a name, if it is given.
  std::optional<std::string> take(std::string_view name);
  std::optional<std::int64_t> take_number(std::string_view name);

  // Takes all words whose name begins with the prefix, without it.
  std::vector<Word> take_prefixed(std::string_view prefix);

  // Splits the words at each bare "/", for the entries of a batch.
  std::vector<Arguments> split();

 private:
  explicit Arguments(std::vector<Word> words) : words_(std::move(words)) {}

  std::vector<Word> words_;
};

// 250ms, 31s, 5m, 12h, 4d.
Duration parse_duration(std::string_view text);

std::vector<std::string> split_list(std::string_view text, char separator);

// One line of a reply: no control characters, quotes where they help.
std::string printable(std::string_view text);

}  // namespace stanchion::scenario

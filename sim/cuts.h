// What is left out of a world, to find out what its failure needs.
//
// A cut takes a kind of fault, a feature, a queue or the number of requests out of the plan that
// the seed made. Whatever is left out, everything after it comes by other dice; the salt chooses
// among them, so that a failure can be looked for again in worlds of the same kind.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::sim {

struct Plan;

struct Cuts {
  std::uint64_t salt = 0;       // 0: the seed's own dice.
  std::optional<int> requests;  // No more than these.
  std::set<std::string> names;  // Of what is left out; see all().

  void apply(Plan& plan) const;
  bool empty() const { return salt == 0 && !requests && names.empty(); }

  // As `simulate --cut` takes them: "salt=3,requests=40,no-crashes".
  std::string text() const;
  static std::optional<Cuts> parse(std::string_view text);

  // The names, those first that make a world much simpler.
  static std::vector<std::string> all();
};

}  // namespace stanchion::sim

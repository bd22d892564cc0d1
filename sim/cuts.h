// What is left out of a world, to find out what its failure depends on.
//
// A cut removes a kind of fault, a feature, a queue or a number of requests from the plan that the
// seed made. Whatever is left out, everything after it gets other random numbers; the salt chooses
// among them, so that a failure can be searched for again in worlds of the same kind.
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
  std::uint64_t salt = 0;       // 0: the seed's own random numbers.
  std::optional<int> requests;  // No more than these.
  std::set<std::string> names;  // The names of what is left out; see all().

  void apply(Plan& plan) const;
  bool empty() const { return salt == 0 && !requests && names.empty(); }

  // As `simulate --cut` takes them: "salt=3,requests=40,no-crashes".
  std::string text() const;
  static std::optional<Cuts> parse(std::string_view text);

  // The names, beginning with those that make a world much simpler.
  static std::vector<std::string> all();
};

}  // namespace stanchion::sim

// The parameters of a Query request, from the URL's query and from a form body, decoded and sorted
// by name, so that all parameters below a name are one range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "wire/limits.h"

namespace stanchion::wire {

// Decodes %XX, and '+' where it stands for a space. nullopt if a '%' is not followed by two digits.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

class QueryParameters {
 public:
  // A parameter in `body` wins over the same name in `url_query`, and a later one over an earlier
  // one.
  static Answer<QueryParameters> parse(std::string_view url_query, std::string_view body,
                                       std::size_t most = kQueryParametersMax);

  // nullptr if there is no parameter of exactly that name.
  const std::string* find(std::string_view name) const;

  // Whether a parameter is called `name` or begins with `name` and a dot.
  bool has_any(std::string_view name) const;

  // The elements of a flattened list, as the prefixes of their parameters, in order of index:
  // "Tag.2", "Tag.10" for name "Tag". An element without an index, "Tag" itself, comes first.
  std::vector<std::string> elements(std::string_view name) const;

 private:
  struct Parameter {
    std::string name;
    std::string value;
  };

  Answer<void> add(std::string_view form, std::size_t most);
  std::vector<Parameter>::const_iterator lower_bound(std::string_view name) const;

  std::vector<Parameter> sorted_;
};

}  // namespace stanchion::wire

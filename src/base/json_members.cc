#include "base/json_members.h"

#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace stanchion {
namespace {

namespace json = boost::json;

// Looks only at member names; parsing stops at the first name that occurs twice in one object.
struct Names {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  using Error = json::error_code;

  bool on_object_begin(Error&) {
    open.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Error&) {
    open.pop_back();
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, Error&) {
    name.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, Error& error) {
    name.append(part.data(), part.size());
    repeated = !open.back().insert(std::exchange(name, {})).second;
    if (repeated) error = json::error::exception;
    return !repeated;
  }

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_string_part(json::string_view, std::size_t, Error&) { return true; }
  bool on_string(json::string_view, std::size_t, Error&) { return true; }
  bool on_number_part(json::string_view, Error&) { return true; }
  bool on_int64(std::int64_t, json::string_view, Error&) { return true; }
  bool on_uint64(std::uint64_t, json::string_view, Error&) { return true; }
  bool on_double(double, json::string_view, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(json::string_view, Error&) { return true; }
  bool on_comment(json::string_view, Error&) { return true; }

  std::vector<std::set<std::string>> open;  // The member names of each enclosing object.
  std::string name;
  bool repeated = false;
};

}  // namespace

bool repeats_a_member(std::string_view text) {
  json::basic_parser<Names> parser{json::parse_options{}};
  json::error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  return parser.handler().repeated;
}

}  // namespace stanchion

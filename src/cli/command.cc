#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <utility>

namespace stanchion::cli {

Option Option::value(const std::string& name) const {
  return Option(*option_->type_name(name));
}

Option Option::required() const {
  return Option(*option_->required());
}

Option Option::with_default() const {
  return Option(*option_->capture_default_str());
}

Option Option::with_default(const std::string& text) const {
  return Option(*option_->default_str(text));
}

Option Option::between(int least, int most) const {
  return Option(*option_->check(CLI::Range(least, most)));
}

Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(*option_->check(CLI::IsMember(words)));
}

Option Option::excludes(Option other) const {
  return Option(*option_->excludes(other.option_));
}

Option Option::all_count() const {
  return Option(*option_->take_all());
}

Option Option::last_counts() const {
  return Option(*option_->take_last());
}

Option Option::separated_by(char separator) const {
  return Option(*option_->delimiter(separator));
}

Option Option::one_each() const {
  return Option(*option_->allow_extra_args(false));
}

Option Option::at_most(int values) const {
  return Option(*option_->expected(0, values));
}

bool Option::given() const {
  return option_->count() > 0;
}

std::vector<std::string> Option::values() const {
  return option_->results();
}

template <class Value>
Option Command::option(const std::string& name, Value& variable, const std::string& help) const {
  return Option(*app_->add_option(name, variable, help));
}

template Option Command::option(const std::string&, std::string&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<std::string>&,
                                const std::string&) const;
template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, double&, const std::string&) const;
template Option Command::option(const std::string&, std::uint32_t&, const std::string&) const;
template Option Command::option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<std::uint32_t>&,
                                const std::string&) const;

Option Command::option(const std::string& name, const std::string& help) const {
  return Option(*app_->add_option(name, help));
}

Option Command::flag(const std::string& name, bool& variable, const std::string& help) const {
  return Option(*app_->add_flag(name, variable, help));
}

Option Command::flag(const std::string& name, const std::string& help) const {
  return Option(*app_->add_flag(name, help));
}

Option Command::flag(const std::string& name, std::function<void()> when_given,
                     const std::string& help) const {
  return Option(*app_->add_flag_callback(name, std::move(when_given), help));
}

void Command::notes(const std::string& text) const {
  app_->footer(text);
}

}  // namespace stanchion::cli

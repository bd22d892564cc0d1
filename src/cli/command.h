// A command's flags and arguments. They stand on CLI11, whose header takes seconds to compile, so only
// the sources of this class, of Program and of CommandText read it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stanchion::cli {

// A flag with or without a value, or an argument. A handle: copies are the same option, which lives
// as long as its program.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  // What the help calls its value: FILE, HOST:PORT, or a choice as json|query.
  Option value(const std::string& name) const;
  Option required() const;
  // The help says what it is if it is not given: what the variable has now, or this text.
  Option with_default() const;
  Option with_default(const std::string& text) const;

  // What is accepted.
  Option between(int least, int most) const;
  Option one_of(const std::vector<std::string>& words) const;
  Option excludes(Option other) const;

  // Of several values: all count, or the last; several in one word; one after each flag; so many.
  Option all_count() const;
  Option last_counts() const;
  Option separated_by(char separator) const;
  Option one_each() const;
  Option at_most(int values) const;

  // After the command line was read.
  bool given() const;
  std::vector<std::string> values() const;

 private:
  CLI::Option* option_;
};

// A handle, as Option.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  // "--listen" is a flag, "FILE" an argument. The variable must outlive the program's run. For the
  // types that command.cc lists.
  template <class Value>
  Option option(const std::string& name, Value& variable, const std::string& help) const;
  // Without a variable: for values().
  Option option(const std::string& name, const std::string& help) const;

  // Flags without a value. "--name{false}" makes the variable false.
  Option flag(const std::string& name, bool& variable, const std::string& help) const;
  Option flag(const std::string& name, const std::string& help) const;
  Option flag(const std::string& name, std::function<void()> when_given,
              const std::string& help) const;

  // Paragraphs below the flags; lines that begin with two spaces are kept as they are.
  void notes(const std::string& text) const;

 private:
  CLI::App* app_;
};

}  // namespace stanchion::cli

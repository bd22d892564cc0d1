// Runs the requests of a scenario against an engine and prints the replies.
//
// Random or long values in replies are printed by the order in which they first appeared: message
// ids as m1, m2, …, receipt handles as r1, r2, …, handles of move tasks as t1, t2, …
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_test_kit.h"
#include "tests/scenario/script.h"

namespace stanchion::scenario {

class Runner {
 public:
  Runner();

  // Executes one line (without the leading "> ") and returns the lines of its reply.
  std::vector<std::string> run(std::string_view line);

 private:
  using Lines = std::vector<std::string>;

  // The names by which replies are printed and which requests may use.
  class Aliases {
   public:
    explicit Aliases(char letter) : letter_(letter) {}
    const std::string& of(const std::string& value);
    std::string value_of(const std::string& alias) const;
    std::string replace_in(std::string text) const;

   private:
    const char letter_;
    std::map<std::string, std::string> names_;
    std::map<std::string, std::string> values_;
  };

  Lines ask(const Request& request);
  Lines print(const ReplyValue& value);
  Lines print(const ReceiveMessageResult& result);
  std::string print(const SentMessage& message);
  std::string print(const ReceivedMessage& message);
  std::string print(const ListMessageMoveTasksResult::Task& task);
  std::string print(const Error& error) const;
  Lines run_directive(const std::string& verb, Arguments& arguments, bool& known);
  Lines fill(Arguments& arguments);
  Lines take(Arguments& arguments, bool then_delete);
  Lines counts(Arguments& arguments);
  Request request_of(const std::string& verb, Arguments& arguments);
  Request message_request_of(const std::string& verb, Arguments& arguments);
  Request move_request_of(const std::string& verb, Arguments& arguments);
  Request list_request_of(const std::string& verb, Arguments& arguments);

  std::unique_ptr<engine::TestWorld> world_;
  Aliases messages_{'m'};
  Aliases receipts_{'r'};
  Aliases tasks_{'t'};
  std::vector<std::string> shown_;  // Attributes that the current receive prints.
  Instant start_;
  std::uint64_t filled_ = 0;
};

}  // namespace stanchion::scenario

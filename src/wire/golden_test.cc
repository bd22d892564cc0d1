// The bytes of both protocols, for every action and every error, against files under
// tests/golden/wire.
//
// A file has three parts: the request, its decoded form, and the response to a sample reply. Only
// the request is written by hand; with the environment variable STANCHION_REGENERATE_GOLDEN set,
// the other two are written anew, to be read in review.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/golden_samples_test.h"

namespace stanchion::wire {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(STANCHION_GOLDEN_WIRE);
const DecodeContext kCaller{"000000000000", "us-east-1"};
const ReplyContext kReplyContext{"66916324-67ca-54bb-a410-3f567a7a0571", "http://localhost:9324"};

bool regenerating() {
  return std::getenv("STANCHION_REGENERATE_GOLDEN") != nullptr;
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void compare_or_write(const fs::path& path, const std::string& expected, const std::string& now) {
  if (regenerating()) {
    std::ofstream(path, std::ios::binary) << now;
    return;
  }
  EXPECT_EQ(expected, now) << path;
}

// The text between the line ">>> name" and the next such line.
std::string section(const std::string& file, const std::string& name) {
  const std::string mark = ">>> " + name + "\n";
  const std::size_t begin = file.find(mark);
  if (begin == std::string::npos) return {};
  const std::size_t from = begin + mark.size();
  const std::size_t end = std::min(file.find("\n>>> ", from), file.size());
  return file.substr(from, end - from);
}

// A request in its text form, kept alive for the HttpCall that refers to it.
struct ParsedRequest {
  explicit ParsedRequest(std::string text) : text_(std::move(text)) {
    std::string_view rest = text_;
    const auto line = [&] {
      const std::string_view taken = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
      return taken;
    };
    const std::string_view first = line();
    const std::size_t space = first.find(' ');
    call.method = first.substr(0, space);
    call.target = first.substr(space + 1);
    for (std::string_view head = line(); !head.empty(); head = line()) {
      const std::size_t colon = head.find(": ");
      headers_.emplace_back(head.substr(0, colon), head.substr(colon + 2));
    }
    call.headers = headers_;
    call.body = rest;
  }
  ParsedRequest(const ParsedRequest&) = delete;

  HttpCall call;

 private:
  std::string text_;
  std::vector<HeaderView> headers_;
};

std::string print(const HttpAnswer& answer) {
  std::ostringstream out;
  out << answer.status << "\nContent-Type: " << answer.content_type << "\n"
      << kRequestIdHeader << ": " << answer.request_id << "\n";
  if (!answer.query_error.empty()) out << kQueryErrorHeader << ": " << answer.query_error << "\n";
  out << "\n" << answer.body;
  return out.str();
}

std::string play(const std::string& file, const std::string& sample) {
  const ParsedRequest request(section(file, "request"));
  const Protocol protocol = detect(request.call);
  const auto decoded = decode(request.call, protocol, kCaller);
  std::string dump;
  HttpAnswer answer;
  if (decoded) {
    dump = dump_request(*decoded);
    const Action action = action_of(*decoded);
    answer = encode(sample_reply(action, sample), action, *decoded, protocol, kReplyContext);
  } else {
    dump = "refused\n";
    answer = encode_error(decoded.error(), protocol, kReplyContext);
  }
  return ">>> request\n" + section(file, "request") + "\n>>> decoded\n" + dump + ">>> response\n" +
         print(answer) + "\n";
}

// The part of a file's name after its first dash says which sample reply answers it.
std::string sample_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t dash = stem.find('-');
  return dash == std::string::npos ? "" : stem.substr(dash + 1);
}

TEST(Golden, EveryActionReadsAndWritesTheseBytes) {
  std::set<std::string> played;
  for (const auto& entry : fs::recursive_directory_iterator(kGolden)) {
    if (!entry.is_regular_file() || entry.path().parent_path().filename() == "errors") continue;
    const std::string file = read_file(entry.path());
    compare_or_write(entry.path(), file, play(file, sample_name(entry.path())));
    const std::string stem = entry.path().stem().string();
    played.insert(entry.path().parent_path().filename().string() + "/" +
                  stem.substr(0, stem.find('-')));
  }
  for (const std::string_view action : kActionNames) {
    EXPECT_TRUE(played.contains(std::string(action) + "/json")) << action;
    EXPECT_TRUE(played.contains(std::string(action) + "/query")) << action;
    EXPECT_TRUE(played.contains(std::string(action) + "/queryjson")) << action;
  }
}

TEST(Golden, BothProtocolsDecodeToTheSameRequest) {
  for (const std::string_view action : kActionNames) {
    const fs::path folder = kGolden / action;
    const std::string decoded = section(read_file(folder / "json.txt"), "decoded");
    EXPECT_EQ(decoded, section(read_file(folder / "query.txt"), "decoded")) << action;
    EXPECT_EQ(decoded, section(read_file(folder / "queryjson.txt"), "decoded")) << action;
  }
}

TEST(Golden, EveryErrorIsAnsweredWithTheseBytes) {
  for (const auto& [protocol, file] :
       {std::pair(Protocol::kJson, "json.txt"), std::pair(Protocol::kQuery, "query.txt"),
        std::pair(Protocol::kQueryJson, "queryjson.txt")}) {
    std::string now;
    for (const auto& [name, error] : sample_errors())
      now += ">>> " + name + "\n" + print(encode_error(error, protocol, kReplyContext)) + "\n";
    const fs::path path = kGolden / "errors" / file;
    compare_or_write(path, read_file(path), now);
  }
}

}  // namespace
}  // namespace stanchion::wire

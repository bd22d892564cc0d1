#include "link/hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace stanchion::link {
namespace {

constexpr std::string_view kMagic = "StLk";
constexpr std::size_t kSizeSize = 4;

std::string with_size(const std::string& body) {
  std::string bytes;
  ByteWriter out(bytes);
  out.u32(static_cast<std::uint32_t>(body.size()));
  out.raw(body);
  return bytes;
}

// The bytes of the message at the front of `input`, if it is complete.
Result<std::optional<std::string>> take_body(std::string& input) {
  if (input.size() < kSizeSize) return std::nullopt;
  const std::size_t size = ByteReader(input).u32();
  if (size > kHelloSizeMax) return fail("it does not speak as a node of a fleet does");
  if (input.size() < kSizeSize + size) return std::nullopt;
  std::string body = input.substr(kSizeSize, size);
  input.erase(0, kSizeSize + size);
  return body;
}

std::uint32_t small(ByteReader& in) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(in.varint(), UINT32_MAX));
}

}  // namespace

std::string encode(const Hello& hello) {
  std::string body;
  ByteWriter out(body);
  out.raw(kMagic);
  out.u8(hello.oldest);
  out.u8(hello.newest);
  out.u8(static_cast<std::uint8_t>(hello.purpose));
  out.varint(hello.shards);
  out.varint(hello.process);
  out.varint(hello.session);
  out.varint(hello.lanes);
  out.varint(hello.lane);
  out.varint(hello.shard.value());
  out.text(hello.fleet);
  out.text(hello.node);
  out.text(hello.to);
  return with_size(body);
}

std::string encode(const HelloAnswer& answer) {
  std::string body;
  ByteWriter out(body);
  out.u8(answer.accepted);
  out.u8(answer.version);
  out.varint(answer.process);
  out.text(answer.text);
  return with_size(body);
}

Result<std::optional<Hello>> take_hello(std::string& input) {
  auto body = take_body(input);
  if (!body) return std::unexpected(std::move(body).error());
  if (!*body) return std::nullopt;
  ByteReader in(**body);
  Hello hello;
  const bool magic = in.raw(kMagic.size()) == kMagic;
  hello.oldest = in.u8();
  hello.newest = in.u8();
  hello.purpose = static_cast<Hello::Purpose>(in.u8());
  hello.shards = small(in);
  hello.process = in.varint();
  hello.session = in.varint();
  hello.lanes = small(in);
  hello.lane = small(in);
  hello.shard = ShardIndex(small(in));
  hello.fleet = in.text();
  hello.node = in.text();
  hello.to = in.text();
  if (!magic || !in.ok()) return fail("it does not speak as a node of a fleet does");
  return hello;
}

Result<std::optional<HelloAnswer>> take_answer(std::string& input) {
  auto body = take_body(input);
  if (!body) return std::unexpected(std::move(body).error());
  if (!*body) return std::nullopt;
  ByteReader in(**body);
  HelloAnswer answer;
  answer.accepted = in.u8() == 1;
  answer.version = in.u8();
  answer.process = in.varint();
  answer.text = in.text();
  if (!in.ok()) return fail("it does not speak as a node of a fleet does");
  return answer;
}

std::optional<std::string> refuse_hello(const Hello& mine, const Hello& theirs) {
  if (theirs.fleet != mine.fleet)
    return fmt::format("it belongs to the fleet \"{}\", this is a node of \"{}\"", theirs.fleet,
                       mine.fleet);
  if (theirs.shards != mine.shards)
    return fmt::format("it takes the fleet to have {} shards, this node knows of {}", theirs.shards,
                       mine.shards);
  if (theirs.oldest > mine.newest || theirs.newest < mine.oldest)
    return fmt::format(
        "it speaks the versions {} to {} of the protocol, this node {} to {}: "
        "upgrade the older one",
        theirs.oldest, theirs.newest, mine.oldest, mine.newest);
  if (!theirs.to.empty() && theirs.to != mine.node)
    return fmt::format("it looks for the node \"{}\", this is \"{}\": check their addresses",
                       theirs.to, mine.node);
  switch (theirs.purpose) {
    case Hello::Purpose::kCopy:
      if (theirs.shard.value() >= mine.shards) return "there is no such shard";
      return std::nullopt;
    case Hello::Purpose::kFrames:
      // The one with the smaller name dials; and a node does not talk to itself.
      if (theirs.node >= mine.node)
        return fmt::format(
            "it calls itself \"{}\", and this is \"{}\": every node needs a name "
            "of its own",
            theirs.node, mine.node);
      if (theirs.lanes == 0 || theirs.lanes > kLanesMax || theirs.lane >= theirs.lanes)
        return "its connections are not numbered as they should be";
      return std::nullopt;
  }
  return "it wants something that this release does not know";
}

}  // namespace stanchion::link

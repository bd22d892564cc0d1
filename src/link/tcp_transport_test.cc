#include "link/tcp_transport.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "fleet/limits.h"
#include "link/frame_codec.h"
#include "link/link_test_kit.h"
#include "os/temporary_directory.h"

namespace stanchion::link {
namespace {

fleet::Frame numbered(std::uint64_t number, std::uint32_t shard = 0) {
  return fleet::Cancel{number, ShardIndex(shard)};
}

std::string encoded(const fleet::Frame& frame) {
  std::string bytes;
  EXPECT_TRUE(encode_frame(frame, bytes));
  return bytes;
}

// By shard, the numbers of the frames in the order of their arrival.
std::map<std::uint32_t, std::vector<std::uint64_t>> numbers(
    const std::vector<fleet::Frame>& frames) {
  std::map<std::uint32_t, std::vector<std::uint64_t>> found;
  for (const fleet::Frame& frame : frames) {
    const auto& cancel = std::get<fleet::Cancel>(frame);
    found[cancel.shard.value()].push_back(cancel.id);
  }
  return found;
}

// Sends frames of a shard of their own from every reactor and from this thread.
void send_from_everywhere(TestNode& node, const fleet::NodeName& to, std::uint64_t frames) {
  const auto senders = static_cast<std::uint32_t>(node.pool().size());
  for (std::uint64_t number = 0; number < frames; ++number) {
    for (std::uint32_t shard = 0; shard < senders; ++shard)
      node.pool()[shard].post([&node, to, number, shard] {
        EXPECT_TRUE(node.transport().send(to, numbered(number, shard)));
      });
    EXPECT_TRUE(node.transport().send(to, numbered(number, senders)));
  }
}

void expect_in_order(const std::vector<fleet::Frame>& frames, std::uint64_t each,
                     std::size_t senders) {
  const auto found = numbers(frames);
  EXPECT_EQ(found.size(), senders);
  for (const auto& [shard, ids] : found) {
    ASSERT_EQ(ids.size(), each) << shard;
    for (std::uint64_t i = 0; i < each; ++i) ASSERT_EQ(ids[i], i) << shard;
  }
}

TEST(TcpTransport, WhomANodeHasALinkWithIsKnown) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  EXPECT_TRUE(a.transport().links()->with.empty());
  a.meet("b", b);
  ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
  EXPECT_EQ(a.transport().links()->with, std::set<fleet::NodeName>{"b"});
  EXPECT_EQ(b.transport().links()->with, std::set<fleet::NodeName>{"a"});
  EXPECT_TRUE(a.transport().links()->without.empty());
  b.stop();
  ASSERT_TRUE(a.has_lost("b"));
  EXPECT_TRUE(a.transport().links()->with.empty());
  EXPECT_TRUE(a.transport().links()->without.contains("b"));
}

TEST(TcpTransport, FramesOfAThreadArriveInTheirOrderWhateverTheNumbersOfReactors) {
  for (const auto& [of_a, of_b] : {std::pair(1, 3), std::pair(3, 1), std::pair(2, 2)}) {
    TestNode a("a", {}, static_cast<std::size_t>(of_a)), b("b", {}, static_cast<std::size_t>(of_b));
    a.start(), b.start();
    a.meet("b", b);
    ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
    constexpr std::uint64_t kFrames = 3'000;
    send_from_everywhere(a, "b", kFrames);
    send_from_everywhere(b, "a", kFrames);
    const auto senders_of_a = static_cast<std::size_t>(of_a) + 1;
    const auto senders_of_b = static_cast<std::size_t>(of_b) + 1;
    ASSERT_TRUE(b.has_taken("a", kFrames * senders_of_a));
    ASSERT_TRUE(a.has_taken("b", kFrames * senders_of_b));
    expect_in_order(b.taken("a"), kFrames, senders_of_a);
    expect_in_order(a.taken("b"), kFrames, senders_of_b);
  }
}

TEST(TcpTransport, LargeFramesArriveWhole) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  a.meet("b", b);
  ASSERT_TRUE(a.is_connected("b"));
  SendMessage send;
  send.message.body = std::string(8 << 20, 'x');
  fleet::Forward forward;
  forward.request = send;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(a.transport().send("b", forward));
  ASSERT_TRUE(b.has_taken("a", 3));
  for (const fleet::Frame& frame : b.taken("a")) {
    const auto& taken = std::get<fleet::Forward>(frame);
    EXPECT_EQ(std::get<SendMessage>(taken.request).message.body, send.message.body);
  }
}

TEST(TcpTransport, AFrameForANodeThatIsNotConnectedIsNotSent) {
  TestNode a("a");
  a.start();
  EXPECT_FALSE(a.transport().send("b", numbered(1)));
}

TEST(TcpTransport, ANodeThatEndsIsMissedOnceAndFoundAgainWhenItIsBack) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  a.meet("b", b);
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
    ASSERT_TRUE(a.transport().send("b", numbered(static_cast<std::uint64_t>(round))));
    ASSERT_TRUE(b.has_taken("a", static_cast<std::size_t>(round)));
    b.stop();
    ASSERT_TRUE(a.has_lost("b", round));
    EXPECT_EQ(a.broke("b"), round);
    EXPECT_FALSE(a.transport().send("b", numbered(0)));
    b.start();
  }
}

TEST(TcpTransport, ANodeThatIsNoPeerAnyMoreIsCutOff) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  a.meet("b", b);
  ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
  a.transport().set_peers({});
  EXPECT_TRUE(a.has_lost("b") && b.has_lost("a"));
}

// Each lane of "a" sends without an end; sooner or later one of them is closed. TestNode checks that
// frames are taken only between made and broke.
TEST(TcpTransport, NothingOfAnOldPairIsTakenAfterItBroke) {
  TestNode b("b");
  b.start();
  const std::string frames = [] {
    std::string bytes;
    for (std::uint64_t i = 0; i < 200; ++i) bytes += encoded(numbered(i));
    return bytes;
  }();
  for (int round = 1; round <= 30; ++round) {
    Hello hello = hello_of_a(1, static_cast<std::uint64_t>(round));
    hello.lanes = 2;
    RawClient first(b.port()), second(b.port());
    ASSERT_TRUE(first.write(encode(hello)));
    hello.lane = 1;
    ASSERT_TRUE(second.write(encode(hello)));
    ASSERT_TRUE(first.read_answer() && second.read_answer());
    std::thread busy([&] {
      while (first.write(frames)) {
      }
    });
    EXPECT_TRUE(second.write(frames));
    ASSERT_TRUE(b.has_taken("a", 100));
    second.close();
    EXPECT_TRUE(b.has_lost("a", round));
    busy.join();
    b.forget_taken();  // Slow builds take gigabytes of them.
  }
}

TEST(TcpTransport, APeerThatSaysNothingIsCutOff) {
  TestNode b("b");
  b.start();
  RawClient silent(b.port());
  ASSERT_TRUE(silent.write(encode(hello_of_a())));
  ASSERT_TRUE(b.is_connected("a"));
  EXPECT_TRUE(b.has_lost("a"));
  EXPECT_TRUE(b.has_logged("it says nothing any more"));
}

TEST(TcpTransport, NodesThatHaveNothingToSayStayConnected) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  a.meet("b", b);
  ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
  // A third connection, which is cut off for its silence, tells how long to wait.
  Hello hello = hello_of_a();
  hello.node = "Z";
  for (int i = 0; i < 2; ++i) {
    RawClient silent(b.port());
    hello.session = static_cast<std::uint64_t>(i + 1);
    ASSERT_TRUE(silent.write(encode(hello)));
    ASSERT_TRUE(b.has_lost("Z", i + 1));
  }
  EXPECT_EQ(a.broke("b") + b.broke("a"), 0);
}

TEST(TcpTransport, APeerThatDoesNotTakeWhatIsSentIsCutOff) {
  TestNode b("b");
  b.start();
  RawClient slow(b.port());
  ASSERT_TRUE(slow.write(encode(hello_of_a())));
  ASSERT_TRUE(b.is_connected("a"));
  fleet::Forward forward;
  SendMessage send;
  send.message.body = std::string(1 << 20, 'x');
  forward.request = send;
  std::size_t sent = 0;
  while (b.transport().send("a", forward)) ++sent;
  EXPECT_TRUE(b.has_lost("a"));
  EXPECT_LE(sent, 2 * (fleet::kQueuedMax >> 20)) << "what the socket takes comes on top";
}

TEST(TcpTransport, BytesThatAreNoFramesBreakThePair) {
  TestNode b("b");
  b.start();
  int lost = 0;
  for (const std::string& bytes :
       {std::string("\xFF\xFF\xFF\xFF", 4), std::string("\x03\0\0\0abc", 7)}) {
    RawClient client(b.port());
    ASSERT_TRUE(client.write(encode(hello_of_a(1, static_cast<std::uint64_t>(lost + 1)))));
    ASSERT_TRUE(client.read_answer());
    ASSERT_TRUE(client.write(bytes));
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_TRUE(b.has_lost("a", ++lost));
  }
}

TEST(TcpTransport, StrangersAreClosedAndDisturbNobody) {
  TestNode a("a"), b("b");
  a.start(), b.start();
  a.meet("b", b);
  ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
  RawClient web(b.port()), empty(b.port());
  ASSERT_TRUE(web.write("GET / HTTP/1.1\r\nHost: b\r\n\r\n"));
  EXPECT_TRUE(web.is_closed_by_peer());
  EXPECT_TRUE(b.has_logged("does not speak as a node"));
  EXPECT_TRUE(empty.is_closed_by_peer()) << "whoever says nothing is closed, too";
  EXPECT_EQ(a.broke("b") + b.broke("a"), 0);
}

TEST(TcpTransport, ANodeOfAnotherFleetIsRefusedAndBothLogsSayWhy) {
  LinkOptions other;
  other.fleet = "other";
  TestNode a("a", other), b("b");
  a.start(), b.start();
  a.meet("b", b);
  EXPECT_TRUE(a.has_logged("refused: it belongs to the fleet \"other\""));
  EXPECT_TRUE(b.has_logged("refuses the node \"a\""));
  EXPECT_EQ(a.made("b") + b.made("a"), 0);
}

// Says what nodes say that have nothing to say, so that the client is not cut off for its silence.
std::jthread pings_of(RawClient& client) {
  return std::jthread([&client](const std::stop_token& stop) {
    while (!stop.stop_requested() && client.write(std::string_view("\0\0\0\0", 4)))
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
}

TEST(TcpTransport, OfTwoProcessesOfOneNameTheLaterIsHeard) {
  TestNode b("b");
  b.start();
  RawClient first(b.port()), second(b.port());
  ASSERT_TRUE(first.write(encode(hello_of_a(1, 1))));
  ASSERT_TRUE(first.read_answer());
  const std::jthread pings_of_first = pings_of(first);
  ASSERT_TRUE(second.write(encode(hello_of_a(2, 2))));
  ASSERT_TRUE(second.read_answer());
  const std::jthread pings_of_second = pings_of(second);
  EXPECT_TRUE(first.is_closed_by_peer());
  EXPECT_TRUE(b.has_logged("another process calls itself"));
  ASSERT_TRUE(second.write(encoded(numbered(7))));
  EXPECT_TRUE(b.has_taken("a", 1));
  EXPECT_EQ(b.made("a"), 2);
  EXPECT_EQ(b.broke("a"), 1);
}

// Half of a session has come, and never the rest.
TEST(TcpTransport, APairIsNotMadeBeforeAllItsLanesAreThere) {
  TestNode b("b");
  b.start();
  Hello hello = hello_of_a();
  hello.lanes = 2;
  RawClient one(b.port());
  ASSERT_TRUE(one.write(encode(hello)));
  EXPECT_TRUE(one.is_closed_by_peer());
  EXPECT_EQ(b.made("a"), 0);
}

}  // namespace
}  // namespace stanchion::link

#include "link/store_copy.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "os/temporary_directory.h"

namespace stanchion::link {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds kPatience = std::chrono::seconds(30);

using Files = std::map<std::string, std::string>;

class StoreCopyTest : public testing::Test {
 protected:
  StoreCopyTest() { connect(); }

  void connect() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    sender_ = std::make_unique<net::Stream>(ends[0], nullptr);
    receiver_ = std::make_unique<net::Stream>(ends[1], nullptr);
  }

  std::string source() const { return scratch_.path() + "/source"; }
  std::string target() const { return scratch_.path() + "/target"; }

  void make_source(const Files& files) {
    fs::create_directory(source());
    for (const auto& [name, bytes] : files)
      std::ofstream(source() + "/" + name, std::ios::binary) << bytes;
  }

  Files found() const {
    Files files;
    for (const auto& entry : fs::directory_iterator(target())) {
      std::ifstream in(entry.path(), std::ios::binary);
      files[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return files;
  }

  // What a sender says, which then ends the connection.
  Status receive(std::string_view said) {
    BlockingStream to(*sender_, kPatience);
    EXPECT_TRUE(to.write(said));
    sender_->shutdown_write();
    return receive();
  }
  Status receive(milliseconds patience = kPatience) {
    BlockingStream from(*receiver_, patience);
    return receive_directory(from, target());
  }

  // The bytes that a copy of the source is made of.
  std::string said() {
    std::string all;
    std::jthread sending([this] {
      BlockingStream to(*sender_, kPatience);
      EXPECT_TRUE(send_directory(to, source()));
      sender_->shutdown_write();
    });
    BlockingStream from(*receiver_, kPatience);
    char byte = 0;
    while (from.read({&byte, 1})) all.push_back(byte);
    return all;
  }

  os::TemporaryDirectory scratch_;
  std::unique_ptr<net::Stream> sender_, receiver_;
};

// One file, as store_copy.h draws it.
std::string file(std::string_view name, std::uint64_t size, std::string_view bytes,
                 std::uint64_t checksum) {
  std::string out;
  ByteWriter writer(out);
  writer.u8(1);
  writer.u8(static_cast<std::uint8_t>(name.size()));
  writer.raw(name);
  writer.u64(size);
  writer.raw(bytes);
  writer.u64(checksum);
  return out;
}

TEST_F(StoreCopyTest, AllFilesArrive) {
  const Files files{
      {"CURRENT", "MANIFEST-000005\n"}, {"000007.sst", std::string(1'000'000, 's')}, {"empty", ""}};
  make_source(files);
  std::jthread sending([this] {
    BlockingStream to(*sender_, kPatience);
    EXPECT_TRUE(send_directory(to, source()));
  });
  const Status received = receive();
  ASSERT_TRUE(received) << received.error().message;
  EXPECT_EQ(found(), files);
}

TEST_F(StoreCopyTest, ADirectoryThatIsThereIsLeftAlone) {
  make_source({{"a", "1"}});
  fs::create_directory(target());
  std::ofstream(target() + "/mine") << "x";
  const std::string whole = said();
  connect();
  const Status received = receive(whole);
  ASSERT_FALSE(received);
  EXPECT_TRUE(received.error().message.ends_with("it exists already")) << received.error().message;
  EXPECT_EQ(found(), (Files{{"mine", "x"}}));
}

// Wherever the connection ends, and whichever byte is another one.
TEST_F(StoreCopyTest, ACopyThatIsNotWholeLeavesNothingBehind) {
  make_source({{"a", "one"}, {"b", "two"}});
  const std::string whole = said();
  for (std::size_t i = 0; i < 2 * whole.size(); ++i) {
    std::string bytes = whole.substr(0, i % whole.size());
    if (i >= whole.size()) {
      bytes = whole;
      bytes[i - whole.size()] = static_cast<char>(bytes[i - whole.size()] ^ 0x10);
    }
    connect();
    const Status received = receive(bytes);
    if (received) {
      // A name is not part of the checksum; the store's manifest knows which files there are.
      EXPECT_EQ(found().size(), 2u) << i;
      fs::remove_all(target());
    }
    EXPECT_FALSE(fs::exists(target())) << i;
  }
}

TEST_F(StoreCopyTest, NamesThatLeadElsewhereAreRefused) {
  for (const std::string_view name : {"../x", "/etc/x", "", ".", "..", "a/b"}) {
    EXPECT_FALSE(is_plain_name(name)) << name;
  }
  EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
  EXPECT_FALSE(is_plain_name(std::string(256, 'x')));
  const Status received = receive(file("../x", 1, "x", 0));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "a file has a name that it may not have");
  EXPECT_FALSE(fs::exists(scratch_.path() + "/x") || fs::exists(target()));
}

TEST_F(StoreCopyTest, AFileBeyondTheLimitIsRefusedBeforeItIsReceived) {
  const Status received = receive(file("big", kCopyFileSizeMax + 1, "", 0));
  ASSERT_FALSE(received);
  EXPECT_TRUE(received.error().message.starts_with("big is too large")) << received.error().message;
}

TEST_F(StoreCopyTest, ASenderThatFailsSaysWhy) {
  BlockingStream to(*sender_, kPatience);
  ASSERT_TRUE(send_failure(to, "no store here"));
  const Status received = receive();
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "the other node could not send it: no store here");
  EXPECT_FALSE(fs::exists(target()));
}

TEST_F(StoreCopyTest, ASenderThatFallsSilentIsNotWaitedForWithoutEnd) {
  BlockingStream to(*sender_, kPatience);
  ASSERT_TRUE(to.write(file("a", 100, "half of it", 0).substr(0, 15)));
  const Status received = receive(milliseconds(50));
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().message, "the other node did not answer in time");
  EXPECT_FALSE(fs::exists(target()));
}

TEST_F(StoreCopyTest, AReceiverThatTakesNothingIsNotWaitedForWithoutEnd) {
  make_source({{"a", std::string(8 << 20, 'x')}});
  BlockingStream to(*sender_, milliseconds(50));
  const Status sent = send_directory(to, source());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().message, "the other node did not answer in time");
}

}  // namespace
}  // namespace stanchion::link

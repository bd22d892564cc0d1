#include "net/output_queue.h"

#include <gtest/gtest.h>

#include <random>

namespace stanchion::net {
namespace {

TEST(OutputQueue, BytesLeaveInTheOrderTheyCameHoweverTheyAreTaken) {
  std::minstd_rand random(1);
  OutputQueue queue;
  std::string expected;
  std::string written;
  for (int round = 0; round < 2000; ++round) {
    if (random() % 2 == 0) {
      const std::size_t size =
          random() % 20 == 0 ? OutputQueue::kOwnPieceMin + random() % 1000 : random() % 500;
      std::string body(size, static_cast<char>('a' + round % 26));
      queue.tail().append("head");
      expected += "head" + body;
      queue.append(std::move(body));
    } else if (!queue.empty()) {
      OutputQueue::Pieces pieces;
      std::size_t left = random() % queue.size() + 1;
      std::size_t taken = 0;
      for (const iovec& piece : queue.front(pieces)) {
        const std::size_t size = std::min(left, piece.iov_len);
        written.append(static_cast<const char*>(piece.iov_base), size);
        left -= size;
        taken += size;
      }
      queue.consume(taken);
    }
    ASSERT_EQ(queue.size(), expected.size() - written.size());
  }
  EXPECT_EQ(written, expected.substr(0, written.size()));
}

TEST(OutputQueue, ALargeBodyIsNotCopied) {
  OutputQueue queue;
  std::string body(OutputQueue::kOwnPieceMin, 'x');
  const char* where = body.data();
  queue.tail().append("head");
  queue.append(std::move(body));
  queue.tail().append("next");
  OutputQueue::Pieces pieces;
  const auto front = queue.front(pieces);
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[1].iov_base, where);
}

}  // namespace
}  // namespace stanchion::net

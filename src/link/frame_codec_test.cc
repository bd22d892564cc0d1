#include "link/frame_codec.h"

#include <gtest/gtest.h>

#include "base/digest.h"
#include "link/frame_test_kit.h"

namespace stanchion::link {
namespace {

std::string encoded(const fleet::Frame& frame) {
  std::string bytes;
  EXPECT_TRUE(encode_frame(frame, bytes));
  return bytes;
}

TEST(FrameCodec, EveryMemberOfEveryFrameComesBack) {
  for (const fleet::Frame& frame : all_kinds_of_frames(1, 50)) {
    const std::string bytes = encoded(frame);
    const auto size = frame_size(bytes);
    ASSERT_TRUE(size);
    ASSERT_EQ(*size + kFrameHeadSize, bytes.size());
    const auto back = decode_frame(std::string_view(bytes).substr(kFrameHeadSize));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(same(frame, *back)) << "frame " << frame.index();
  }
}

// Every part has a size or a count of fields, so the loss of bytes at the end is noticed.
TEST(FrameCodec, AFrameThatIsCutShortAnywhereIsRefused) {
  for (const fleet::Frame& frame : all_kinds_of_frames(2, 3)) {
    const std::string bytes = encoded(frame).substr(kFrameHeadSize);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      ASSERT_FALSE(decode_frame(std::string_view(bytes).substr(0, size)))
          << "frame " << frame.index() << ", " << size << " of " << bytes.size();
  }
}

TEST(FrameCodec, BytesBehindAFrameAreRefused) {
  for (const fleet::Frame& frame : all_kinds_of_frames(3, 1))
    EXPECT_FALSE(decode_frame(encoded(frame).substr(kFrameHeadSize) + '\0')) << frame.index();
}

TEST(FrameCodec, FieldsOfANewerReleaseAreSkipped) {
  std::string bytes = encoded(fleet::Cancel{7, ShardIndex(3)}).substr(kFrameHeadSize);
  ++bytes[1];  // The count of fields.
  bytes += "anything";
  const auto frame = decode_frame(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<fleet::Cancel>(*frame).id, 7u);
  EXPECT_EQ(std::get<fleet::Cancel>(*frame).shard, ShardIndex(3));
}

TEST(FrameCodec, FieldsThatAnOlderReleaseDidNotKnowHaveTheirDefaults) {
  std::string bytes = encoded(fleet::Told{7, ShardIndex(3), {}, true}).substr(kFrameHeadSize);
  --bytes[1];
  bytes.pop_back();
  const auto frame = decode_frame(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<fleet::Told>(*frame).shard, ShardIndex(3));
  EXPECT_FALSE(std::get<fleet::Told>(*frame).known);
}

TEST(FrameCodec, ATransferOfAnOlderReleaseHasNoEpoch) {
  FrameMaker maker(4);
  fleet::Deliver deliver;
  maker.fill(deliver);
  deliver.epoch = SourceEpoch(5);
  std::string bytes = encoded(deliver).substr(kFrameHeadSize);
  EXPECT_EQ(std::get<fleet::Deliver>(*decode_frame(bytes)).epoch, SourceEpoch(5));
  --bytes[1];
  bytes.pop_back();
  const auto frame = decode_frame(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<fleet::Deliver>(*frame).transfer.number, deliver.transfer.number);
  EXPECT_EQ(std::get<fleet::Deliver>(*frame).epoch, SourceEpoch());
}

TEST(FrameCodec, AMessageWithoutItsContentIsRefused) {
  FrameMaker maker(4);
  fleet::Deliver deliver;
  maker.fill(deliver);
  const std::string bytes = encoded(deliver).substr(kFrameHeadSize);
  const std::string content(deliver.transfer.content->encoded());
  std::string without = bytes;
  const std::size_t at = without.find(content);
  ASSERT_NE(at, std::string::npos);
  without.erase(at, content.size());
  without[at - 1] = 0;  // Its size, which is one byte.
  EXPECT_FALSE(decode_frame(without));
}

TEST(FrameCodec, TheErrorOfANewerReleaseIsAFailureOfTheServer) {
  std::string bytes = encoded(answered(refuse(ErrorCode::kOverLimit, "m"))).substr(kFrameHeadSize);
  bytes.replace(bytes.find("OverLimit"), 9, "OverUnder");
  const auto frame = decode_frame(bytes);
  ASSERT_TRUE(frame);
  EXPECT_EQ(std::get<fleet::Answered>(*frame).reply.error().code, ErrorCode::kInternalFailure);
}

TEST(FrameCodec, AFrameBeyondTheLimitIsNotWritten) {
  SendMessage send;
  send.message.body = std::string(kFrameSizeMax, 'x');
  std::string bytes = "before";
  EXPECT_FALSE(encode_frame(forward(std::move(send)), bytes));
  EXPECT_EQ(bytes, "before");
  const std::uint32_t size = kFrameSizeMax + 1;
  EXPECT_FALSE(frame_size({reinterpret_cast<const char*>(&size), sizeof size}));
}

TEST(FrameCodec, ALongListIsRefused) {
  UntagQueue untag;
  untag.tag_keys.resize(kListMax);
  EXPECT_TRUE(decode_frame(encoded(forward(untag)).substr(kFrameHeadSize)));
  untag.tag_keys.resize(kListMax + 1);
  EXPECT_FALSE(decode_frame(encoded(forward(untag)).substr(kFrameHeadSize)));
}

TEST(FrameCodec, AReceiveOfTheLargestMessagesFits) {
  const std::string body(static_cast<std::size_t>(limits::kMessageSizeMax), 'x');
  ContentParts parts;
  parts.body = body;
  ReceiveMessageResult result;
  result.messages.resize(static_cast<std::size_t>(limits::kReceiveMessagesMax));
  for (ReceivedMessage& message : result.messages) message.content = Content::make(parts);
  std::string bytes;
  EXPECT_TRUE(encode_frame(answered(std::move(result)), bytes));
}

// If this fails, the bytes of frames have changed, and nodes of the release before cannot read
// them. Members may be added at the end of a frame, a request or a reply: then write the new figure
// here. Anything else needs another kLinkVersion.
TEST(FrameCodec, TheBytesOfFramesHaveNotChanged) {
  std::string all;
  for (const fleet::Frame& frame : all_kinds_of_frames(5, 20))
    EXPECT_TRUE(encode_frame(frame, all));
  EXPECT_EQ(xxh3_64(all), 13134923488283482401u);
}

}  // namespace
}  // namespace stanchion::link

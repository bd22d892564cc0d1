// Any bytes as a frame of another node: decoding must accept or refuse them, and what it accepts
// must mean the same after it was written again.
#include "base/check.h"
#include "fuzz/fuzz.h"
#include "link/frame_codec.h"
#include "link/frame_test_kit.h"

namespace stanchion::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> inputs;
  for (const fleet::Frame& frame : link::all_kinds_of_frames(1, 2)) {
    std::string bytes;
    CHECK(link::encode_frame(frame, bytes), "small frames are within the limit");
    inputs.push_back(bytes.substr(link::kFrameHeadSize));
  }
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion;
  const auto frame = link::decode_frame({reinterpret_cast<const char*>(data), size});
  if (!frame) {
    CHECK(!frame.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  std::string bytes;
  CHECK(link::encode_frame(*frame, bytes), "what was accepted can be written");
  const auto again = link::decode_frame(std::string_view(bytes).substr(link::kFrameHeadSize));
  CHECK(again && link::same(*frame, *again), "what was accepted means the same again");
  return 0;
}

// Any bytes as a record of a fleet's control log: decoding must accept or refuse them, and what it
// accepts must mean the same after it was written again.
#include "base/check.h"
#include "fleet/control.h"
#include "fleet/control_codec.h"
#include "fleet/control_test_kit.h"
#include "fuzz/fuzz.h"

namespace stanchion::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> inputs;
  for (const fleet::ControlRecord& record : fleet::all_kinds_of_records())
    inputs.push_back(fleet::encode_control(record));
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion;
  const auto record = fleet::decode_control({reinterpret_cast<const char*>(data), size});
  if (!record) {
    CHECK(!record.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  if (!*record) return 0;
  const auto again = fleet::decode_control(fleet::encode_control(**record));
  CHECK(again && *again == *record, "what was accepted means the same again");
  CHECK(fleet::control_key(**record).size() < fleet::kControlRecordSizeMax, "keys are short");
  fleet::ControlState state(4);
  state.apply(**record, SteadyInstant());
  return 0;
}

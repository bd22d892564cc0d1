// Any bytes as handles that clients send back: receipt handles and handles of move tasks, made up
// or made by this very server. Each is refused or does what it says; the engine's invariants hold
// afterwards, and a handle that it accepts is one that it would have made.
//
// The first byte says what the rest is: 0 a receipt handle, 1 the numbers of a correctly signed
// one, anything else the handle of a move task, 3 the text before it is encoded.
#include <algorithm>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "engine/routing.h"
#include "engine/sample_world.h"
#include "fuzz/fuzz.h"
#include "model/receipt.h"

namespace stanchion::fuzz {
namespace {

using engine::SampleWorld;

constexpr char kReceipt = 0;
constexpr char kNumbers = 1;
constexpr char kTask = 2;
constexpr char kTaskText = 3;

// The key of TestWorld.
MacKey key_of_world() {
  MacKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return key;
}

// Whether the handle had any effect.
bool use_receipt(SampleWorld& sample, const std::string& handle) {
  const bool is_one = parse_receipt(handle, key_of_world()).has_value();
  bool done = false;
  for (const char* name : {"plain", "line.fifo"}) {
    const QueueRef queue = SampleWorld::ref(name);
    const Reply changed = sample.world.ask(ChangeMessageVisibility{queue, handle, 5});
    const Reply deleted = sample.world.ask(DeleteMessage{queue, handle});
    CHECK(is_one || (!changed && !deleted), "what is no receipt changes nothing");
    const Reply again = sample.world.ask(DeleteMessage{queue, handle});
    CHECK(again.has_value() == deleted.has_value(), "a delete may be repeated");
    done = done || changed || deleted;
  }
  return done;
}

bool use_task(SampleWorld& sample, const std::string& handle) {
  const CancelMessageMoveTask cancel{handle};
  static_cast<void>(engine::home_of(cancel));
  if (!sample.world.ask(cancel)) return false;
  CHECK(!sample.world.ask(cancel), "a task is cancelled once");
  return true;
}

std::string signed_receipt(std::string_view numbers) {
  std::uint64_t queue = 0, seq = 0;
  std::uint32_t receive = 0;
  std::string bytes(numbers.substr(0, sizeof queue + sizeof seq + sizeof receive));
  bytes.resize(sizeof queue + sizeof seq + sizeof receive);
  std::memcpy(&queue, bytes.data(), sizeof queue);
  std::memcpy(&seq, bytes.data() + sizeof queue, sizeof seq);
  std::memcpy(&receive, bytes.data() + sizeof queue + sizeof seq, sizeof receive);
  return format_receipt({QueueId(queue), Seq(seq), receive}, key_of_world());
}

std::string numbers_of(const Receipt& receipt) {
  const std::uint64_t queue = receipt.queue.value(), seq = receipt.seq.value();
  const std::uint32_t receive = receipt.receive;
  std::string bytes(sizeof queue + sizeof seq + sizeof receive, '\0');
  std::memcpy(bytes.data(), &queue, sizeof queue);
  std::memcpy(bytes.data() + sizeof queue, &seq, sizeof seq);
  std::memcpy(bytes.data() + sizeof queue + sizeof seq, &receive, sizeof receive);
  return bytes;
}

}  // namespace

std::vector<std::string> seeds() {
  const SampleWorld sample;
  return {kReceipt + sample.receipt, kTask + sample.task,
          kTaskText + from_base64(sample.task).value(),
          kNumbers + numbers_of(parse_receipt(sample.receipt, key_of_world()).value())};
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion;
  using namespace stanchion::fuzz;
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  static std::optional<engine::SampleWorld> sample;
  if (!sample) sample.emplace();
  const bool used = data[0] == kReceipt    ? use_receipt(*sample, rest)
                    : data[0] == kNumbers  ? use_receipt(*sample, signed_receipt(rest))
                    : data[0] == kTaskText ? use_task(*sample, to_base64(rest))
                                           : use_task(*sample, rest);
  sample->world.engine().check_invariants();
  // Restores the state for the next input.
  if (used) sample.reset();
  return 0;
}

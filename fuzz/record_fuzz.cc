// Any bytes as what the layers above the journal read back: a record of facts, the content of a
// message, a receipt handle. They are refused, or they mean something that can be written again and
// then means the same.
//
// The first byte says what the rest is: 0 a record, 1 a content, anything else a receipt handle.
#include <string>
#include <string_view>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "model/fact.h"
#include "model/receipt.h"

namespace stanchion::fuzz {
namespace {

constexpr char kRecord = 0;
constexpr char kContent = 1;
constexpr char kReceipt = 2;
constexpr MacKey kKey{1, 2, 3};

std::string encode(const Record& record) {
  RecordWriter writer(record.at);
  for (const Fact& fact : record.facts) std::visit([&](const auto& f) { writer.add(f); }, fact);
  return writer.bytes();
}

// Bytes of a newer release may have fields that are unknown here, so writing them again need not
// give the same bytes; but from then on it does.
void check_record(std::string_view bytes) {
  const auto record = parse_record(bytes);
  if (!record) return;
  for (const Fact& fact : record->facts) CHECK(!describe(fact).empty(), name_of(fact));
  const std::string written = encode(*record);
  const auto again = parse_record(written);
  CHECK(again.has_value(), "what was written cannot be read");
  CHECK(again->at == record->at && again->facts.size() == record->facts.size(), "facts got lost");
  for (std::size_t i = 0; i < again->facts.size(); ++i)
    CHECK(describe(again->facts[i]) == describe(record->facts[i]), "a fact has changed");
  CHECK(encode(*again) == written, "writing is not stable");
}

void check_content(std::string_view bytes) {
  const auto content = Content::parse(bytes);
  if (!content) return;
  CHECK((*content)->encoded() == bytes, "content is kept as it is");
  std::size_t size = 0;
  for (const AttributeView& attribute : (*content)->attributes())
    size += attribute.name.size() + attribute.data_type.size() + attribute.value.size();
  CHECK(size <= (*content)->attribute_section().size(), "attributes lie in their section");
  CHECK(encode_attributes((*content)->attributes()).size() <= bytes.size() * 2, "a bounded size");
  md5_of_attributes((*content)->attributes());

  const ContentPtr copy = Content::make((*content)->parts());
  CHECK(copy->body() == (*content)->body() && copy->group() == (*content)->group(), "a copy");
  CHECK(copy->attributes() == (*content)->attributes() && copy->id() == (*content)->id(), "a copy");
  CHECK(copy->sent() == (*content)->sent() && copy->sender() == (*content)->sender(), "a copy");
  CHECK(copy->encoded().size() == bytes.size(), "a copy has the same size");
}

void check_receipt(std::string_view handle) {
  const auto receipt = parse_receipt(handle, kKey);
  if (!receipt) return;
  CHECK(parse_receipt(format_receipt(*receipt, kKey), kKey) == receipt, "a receipt is stable");
  CHECK(!parse_receipt(handle, MacKey{}), "a receipt of another key is worth nothing");
}

ContentPtr sample_content() {
  const std::string attributes =
      encode_attributes({{"a", "String", ValueKind::kString, "text"},
                         {"b", "Binary.gif", ValueKind::kBinary, std::string_view("\0\1", 2)}});
  return Content::make({.id = {},
                        .sent = from_millis(1'700'000'000'000),
                        .body = "hello",
                        .group = "g",
                        .deduplication_id = "d",
                        .sender = "000000000000",
                        .trace_header = "Root=1-5759e988-bd862e3fe1be46a994272793",
                        .source_arn = "arn:aws:sqs:us-east-1:000000000000:q",
                        .last_received = from_millis(1'700'000'030'000),
                        .attribute_section = attributes});
}

QueueCreated sample_queue() {
  QueueCreated created{QueueId(1), {"000000000000", "us-east-1", "q"}, {}, {{"team", "red"}}};
  created.attributes.redrive = RedrivePolicy{"arn:aws:sqs:us-east-1:000000000000:dead", 3};
  created.attributes.redrive_allow =
      RedriveAllowPolicy{RedriveAllowPolicy::Permission::kByQueue, {"arn:aws:sqs:r:a:x"}};
  return created;
}

// One record with a fact of every kind, and each of these facts in a record of its own.
std::vector<Fact> sample_facts() {
  const QueueId queue(1);
  const Instant soon = from_millis(1'700'000'030'000);
  const QueueRef dead{"000000000000", "us-east-1", "dead"};
  return {
      ShardFounded{kKey},
      sample_queue(),
      QueueDeleted{queue},
      QueuePurged{queue},
      QueueAttributesSet{queue, sample_queue().attributes},
      QueueTagged{queue, {{"k", "v"}}},
      QueueUntagged{queue, {"k", "l"}},
      MessageSent{queue, Seq(7), soon, sample_content(), Hash128{1, 2}},
      MessagesReceived{queue, {{Seq(7), soon}, {Seq(300), soon}}, "attempt"},
      MessagesDeleted{queue, {Seq(7), Seq(300)}},
      VisibilityChanged{queue, {{Seq(7), soon}}, ""},
      MessagesLeft{queue, TransferReason::kRedrive, {}, {{Seq(7), TransferNo(1), dead}}},
      TransferAccepted{ShardIndex(2), TransferNo(1), TransferNo(1), queue, Seq(9), sample_content(),
                       soon, 4, soon},
      TransfersSettled{{TransferNo(1), TransferNo(2)}},
      TransferRefused{TransferNo(1)},
      MoveTaskStarted{queue, {}, dead.arn(), 10, 100},
      MoveTaskEnded{queue, {}, MoveTaskStatus::kCompleted, "reason"},
      MessagesChosen{queue, {{Seq(7), "group"}, {Seq(300), ""}}},
      TransfersResumed{TransferNo(9)},
  };
}

}  // namespace

std::vector<std::string> seeds() {
  const Instant now = from_millis(1'700'000'000'000);
  std::vector<std::string> inputs;
  for (const Fact& fact : sample_facts()) inputs.push_back(kRecord + encode({now, {fact}}));
  inputs.push_back(kRecord + encode({now, sample_facts()}));
  inputs.push_back(kContent + std::string(sample_content()->encoded()));
  inputs.push_back(kReceipt + format_receipt({QueueId(1), Seq(2), 3}, kKey));
  return inputs;
}

}  // namespace stanchion::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stanchion::fuzz;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case kRecord:
      check_record(rest);
      break;
    case kContent:
      check_content(rest);
      break;
    default:
      check_receipt(rest);
  }
  return 0;
}

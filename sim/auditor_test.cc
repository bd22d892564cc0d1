// The auditor alone, told what clients asked and what they were answered: what it must accept
// because it is possible, and what it must not.
#include "sim/auditor.h"

#include <gtest/gtest.h>

#include "sim/plan.h"

namespace stanchion::sim {
namespace {

using std::chrono::seconds;

constexpr const char* kSteps = "steps.fifo";
constexpr const char* kDead = "dead.fifo";

class AuditorTest : public testing::Test {
 protected:
  AuditorTest() {
    keeper.begin(Instant());
    world.join(&keeper);
  }

  void pass(Micros time) {
    world.schedule(time, kWorldOwner, [] {});
    world.step();
  }

  CallNo ask(const Request& request) {
    pass(kMillisecond);
    return auditor.submitted(request);
  }
  void answer(CallNo call, const Reply& reply) {
    pass(kMillisecond);
    auditor.replied(call, reply);
  }
  void lose(CallNo call) {
    pass(kMillisecond);
    auditor.in_doubt(call);
  }
  void exchange(const Request& request, const Reply& reply) { answer(ask(request), reply); }

  void create(const std::string& name, StringMap attributes = {}) {
    attributes["FifoQueue"] = "true";
    exchange(CreateQueue{ref_of(name), attributes, {}}, QueueUrlResult{ref_of(name)});
  }
  void set(const std::string& name, const std::string& attribute, const std::string& value) {
    exchange(SetQueueAttributes{ref_of(name), {{attribute, value}}}, NoResult{});
  }

  static SendMessage send(const std::string& body, const std::string& deduplication_id,
                          const std::string& group = "group") {
    SendMessage request{ref_of(kSteps), "me", {}};
    request.message.body = body;
    request.message.group_id = group;
    request.message.deduplication_id = deduplication_id;
    return request;
  }
  static SentMessage sent(const std::string& body, std::uint8_t id, std::uint64_t seq) {
    SentMessage reply;
    reply.id.bytes[0] = id;
    reply.body_md5 = md5(body);
    reply.sequence_number = Seq(seq);
    return reply;
  }
  // Sent and acknowledged; `sent_at` is the server's timestamp.
  void send_one(const std::string& body, const std::string& deduplication_id, std::uint8_t id,
                std::uint64_t seq, const std::string& group = "group") {
    const CallNo call = ask(send(body, deduplication_id, group));
    sent_at[body] = world.clock();
    answer(call, sent(body, id, seq));
  }

  static ReceiveMessage receive(const std::string& name, const std::string& attempt = "",
                                std::optional<std::int64_t> visibility = std::nullopt) {
    ReceiveMessage request;
    request.queue = ref_of(name);
    request.max_number_of_messages = 10;
    request.visibility_timeout = visibility;
    if (!attempt.empty()) request.attempt_id = attempt;
    return request;
  }
  struct Found {
    std::string body;
    std::string deduplication_id;
    std::uint8_t id = 0;
    std::uint64_t seq = 0;
    std::uint32_t count = 1;
    std::string source = {};  // The queue from which it came here as a dead letter.
    std::string group = "group";
  };
  ReceivedMessage received(const Found& found) {
    ReceivedMessage message;
    MessageId id;
    id.bytes[0] = found.id;
    message.content =
        Content::make({.id = id,
                       .sent = sent_at.at(found.body),
                       .body = found.body,
                       .group = found.group,
                       .deduplication_id = found.deduplication_id,
                       .sender = "me",
                       .trace_header = {},
                       .source_arn = found.source.empty() ? "" : ref_of(found.source).arn(),
                       .last_received = {},
                       .attribute_section = {},
                       .body_md5 = nullptr});
    message.receipt_handle = found.body + "-" + std::to_string(found.count);
    message.receive_count = found.count;
    message.first_received = world.clock();
    message.sequence_number = Seq(found.seq);
    return message;
  }
  void get(const ReceiveMessage& request, const std::vector<Found>& all) {
    const CallNo call = ask(request);
    ReceiveMessageResult result;
    for (const Found& found : all) result.messages.push_back(received(found));
    answer(call, result);
  }
  void remove(const std::string& name, const std::string& receipt) {
    exchange(DeleteMessage{ref_of(name), receipt}, NoResult{});
  }
  void count(const CallNo call, int visible) {
    answer(call, QueueAttributesResult{{{"ApproximateNumberOfMessages", std::to_string(visible)},
                                        {"ApproximateNumberOfMessagesNotVisible", "0"},
                                        {"ApproximateNumberOfMessagesDelayed", "0"}}});
  }

  World world{1, false};
  WorldClock wall{world};
  WorldSteadyClock steady{world};
  os::Timekeeper keeper{wall, steady};
  Auditor auditor{world};
  std::map<std::string, Instant> sent_at;
};

// World 555018086. The first send was in doubt and had happened; long after, its deduplication id
// was used for another message.
TEST_F(AuditorTest, ARepetitionOfASendInDoubtIsOneStillWhenItsIdWasUsedAgain) {
  create(kSteps);
  const CallNo lost = ask(send("m1.", "d"));
  sent_at["m1."] = world.clock();
  lose(lost);
  exchange(send("m2.", "d"), sent("m2.", 1, 1));
  send_one("m3.", "e", 3, 2);
  pass(400 * kSecond);
  send_one("m4.", "d", 4, 3, "other");
  get(receive(kSteps, "", 30),
      {{.body = "m4.", .deduplication_id = "d", .id = 4, .seq = 3, .group = "other"}});
  get(receive(kSteps, "", 30), {{"m1.", "d", 1, 1}, {"m3.", "e", 3, 2}});
}

// When one of two sends with the same id was seen, the other does not exist; one with another id
// does.
TEST_F(AuditorTest, OfTwoSendsThatWereAcknowledgedWithOneIdTheFirstExists) {
  create(kSteps);
  const CallNo lost = ask(send("m1.", "d"));
  sent_at["m1."] = sent_at["m2."] = world.clock();
  lose(lost);
  exchange(send("m2.", "d"), sent("m2.", 1, 1));
  get(receive(kSteps, "", 0), {{"m1.", "d", 1, 1}});
  EXPECT_THROW(get(receive(kSteps, "", 30), {{"m2.", "d", 1, 1, 2}}), Violation);
}

// World 940000004122. The first send was lost and had happened, was received by a call that was lost
// too, and came back from its dead-letter queue under another id before anybody saw it.
TEST_F(AuditorTest, ARepetitionOfASendInDoubtIsOneStillWhenAMoveTaskGaveThatAnotherId) {
  create(kDead);
  create(kSteps);
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 1));
  const CallNo lost = ask(send("m1.", "d", "other"));
  sent_at["m1."] = world.clock();
  lose(ask(receive(kSteps, "", 0)));
  lose(lost);
  exchange(send("m2.", "d"), sent("m2.", 1, 1));
  exchange(StartMessageMoveTask{ref_of(kDead).arn(), ref_of(kSteps).arn(), {}},
           StartMessageMoveTaskResult{"handle"});
  get(receive(kSteps, "", 30),
      {{.body = "m1.", .deduplication_id = "d", .id = 9, .seq = 2, .group = "other"}});
  send_one("m3.", "e", 3, 3);
  get(receive(kSteps, "", 30), {{"m3.", "e", 3, 3}});
}

// The same without a repetition: that it is another life shows by the deduplication id.
TEST_F(AuditorTest, ASendInDoubtMayBeSeenFirstWhenAMoveTaskHasGivenItAnotherId) {
  create(kDead);
  create(kSteps);
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 2));
  const CallNo lost = ask(send("m1.", "d"));
  for (int i = 0; i < 3; ++i) lose(ask(receive(kSteps, "", 0)));
  exchange(StartMessageMoveTask{ref_of(kDead).arn(), ref_of(kSteps).arn(), {}},
           StartMessageMoveTaskResult{"handle"});
  sent_at["m1."] = world.clock();
  lose(lost);
  get(receive(kSteps, "", 0), {{"m1.", "id-1", 9, 2, 1}});
  get(receive(kSteps, "", 0), {{"m1.", "id-1", 9, 2, 2}});
}

// World 126753437202310 of fleets. It was moved from the dead-letter queue, and died where it was moved.
TEST_F(AuditorTest, ASendInDoubtToADeadLetterQueueMayBeSeenFirstAsADeadLetter) {
  create(kDead);
  create(kSteps);
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 1));
  SendMessage directly = send("m1.", "d");
  directly.queue = ref_of(kDead);
  const CallNo lost = ask(directly);
  exchange(StartMessageMoveTask{ref_of(kDead).arn(), ref_of(kSteps).arn(), {}},
           StartMessageMoveTaskResult{"handle"});
  sent_at["m1."] = world.clock();
  for (int i = 0; i < 2; ++i) lose(ask(receive(kSteps, "", 0)));
  lose(lost);
  get(receive(kDead, "", 0), {{"m1.", "id-9", 9, 1, 2, kSteps}});
}

TEST_F(AuditorTest, ASendThatCannotHaveBeenARepetitionIsNotOvertaken) {
  create(kSteps);
  const CallNo lost = ask(send("m1.", "d", "other"));
  sent_at["m1."] = world.clock();
  lose(lost);
  pass(400 * kSecond);
  send_one("m2.", "d", 2, 2);
  send_one("m3.", "e", 3, 3);
  // The send in doubt is another message, so this one is not its repetition.
  get(receive(kSteps, "", 30),
      {{.body = "m1.", .deduplication_id = "d", .id = 1, .seq = 1, .group = "other"}});
  EXPECT_THROW(get(receive(kSteps, "", 30), {{"m3.", "e", 3, 3}}), Violation);
}

TEST_F(AuditorTest, AnAcknowledgedMessageIsNotOvertaken) {
  create(kSteps);
  send_one("m1.", "d", 1, 1);
  send_one("m2.", "e", 2, 2);
  EXPECT_THROW(get(receive(kSteps, "", 30), {{"m2.", "e", 2, 2}}), Violation);
}

// World 930000032057. While the answer to a receive was on its way, its first message became a dead
// letter, was moved back and was received again. The answer that shows it at its new place was
// quicker.
class OvertakenAnswer : public AuditorTest {
 protected:
  OvertakenAnswer() {
    create(kDead);
    create(kSteps, {{"RedrivePolicy", redrive_policy(kDead, 1)}});
    send_one("m1.", "d", 1, 1);
    send_one("m2.", "e", 2, 2);
    exchange(StartMessageMoveTask{ref_of(kDead).arn(), ref_of(kSteps).arn(), {}},
             StartMessageMoveTaskResult{"handle"});
    late = ask(receive(kSteps, "", 0));
    get(receive(kSteps, "", 30), {{"m1.", "id-1", 9, 3}});
  }

  CallNo late = 0;
  Found first{"m1.", "d", 1, 1};
  Found second{"m2.", "e", 2, 2};
};

TEST_F(OvertakenAnswer, HasTheOrderOfItsOwnTime) {
  answer(late, ReceiveMessageResult{{received(first), received(second)}, {}});
}

TEST_F(OvertakenAnswer, IsNotInTheOrderOfALaterTime) {
  EXPECT_THROW(answer(late, ReceiveMessageResult{{received(second), received(first)}, {}}),
               Violation);
}

TEST_F(AuditorTest, MessagesOfAGroupAreInOrderInOneAnswer) {
  create(kSteps);
  send_one("m1.", "d", 1, 1);
  send_one("m2.", "e", 2, 2);
  get(receive(kSteps, "", 0), {{"m1.", "d", 1, 1}, {"m2.", "e", 2, 2}});
  // The first may be gone; then the second comes alone.
  lose(ask(DeleteMessage{ref_of(kSteps), "m1.-1"}));
  EXPECT_THROW(get(receive(kSteps, "", 0), {{"m2.", "e", 2, 2, 2}, {"m1.", "d", 1, 1, 2}}),
               Violation);
}

// World 555031615. The answer to the repetition was lost; it may have applied the queue's own
// timeout.
TEST_F(AuditorTest, AReceiptMayBeValidForAsLongAsARepetitionInDoubtSays) {
  create(kSteps, {{"VisibilityTimeout", "30"}});
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "attempt", 2), {{"m1.", "d", 1, 1}});
  lose(ask(receive(kSteps, "attempt")));
  pass(10 * kSecond);
  remove(kSteps, "m1.-1");
}

TEST_F(AuditorTest, AReceiptMayBeValidForAsLongAsARepetitionSaid) {
  create(kSteps, {{"VisibilityTimeout", "30"}});
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "attempt", 2), {{"m1.", "d", 1, 1}});
  const CallNo again = ask(receive(kSteps, "attempt"));
  // It is not known by which of the two the repetition went.
  const CallNo setting = ask(SetQueueAttributes{ref_of(kSteps), {{"VisibilityTimeout", "1"}}});
  answer(again, ReceiveMessageResult{{received({"m1.", "d", 1, 1})}, {}});
  answer(setting, NoResult{});
  pass(10 * kSecond);
  remove(kSteps, "m1.-1");
}

TEST_F(AuditorTest, AReceiptMayBeValidForAsLongAsAnotherTryThatOvertookItSays) {
  create(kSteps);
  send_one("m1.", "d", 1, 1);
  const CallNo late = ask(receive(kSteps, "attempt", 60));
  get(receive(kSteps, "attempt", 2), {{"m1.", "d", 1, 1}});
  lose(late);
  pass(10 * kSecond);
  remove(kSteps, "m1.-1");
}

// World 960000061901. The change came first, when the message was visible, and did nothing.
TEST_F(AuditorTest, AnOldReceiptDoesNotSurelyHideWhatIsReceivedMeanwhile) {
  const std::string orders = "orders";
  exchange(CreateQueue{ref_of(orders), {}, {}}, QueueUrlResult{ref_of(orders)});
  SendMessage request{ref_of(orders), "me", {}};
  request.message.body = "m1.";
  const CallNo sending = ask(request);
  sent_at["m1."] = world.clock();
  SentMessage reply = sent("m1.", 1, 1);
  reply.sequence_number.reset();
  answer(sending, reply);
  const auto get_it = [&](std::int64_t visibility, std::uint32_t count) {
    const CallNo call = ask(receive(orders, "", visibility));
    ReceivedMessage message = received({"m1.", "", 1, 0, count, "", ""});
    message.sequence_number.reset();
    answer(call, ReceiveMessageResult{.messages = {message}, .wait = {}});
  };
  get_it(0, 1);
  const CallNo change = ask(ChangeMessageVisibility{ref_of(orders), "m1.-1", 60});
  get_it(5, 2);
  answer(change, NoResult{});
  pass(6 * kSecond);
  get_it(5, 3);
  exchange(ChangeMessageVisibility{ref_of(orders), "m1.-1", 60}, NoResult{});
  pass(6 * kSecond);
  EXPECT_THROW(get_it(5, 4), Violation) << "this one came behind the receive";
}

TEST_F(AuditorTest, AnExpiredReceiptDeletesNothing) {
  create(kSteps, {{"VisibilityTimeout", "30"}});
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "attempt", 2), {{"m1.", "d", 1, 1}});
  lose(ask(receive(kSteps, "attempt")));
  pass(40 * kSecond);
  EXPECT_THROW(remove(kSteps, "m1.-1"), Violation);
}

// World 555035990. The dead letter arrived while the queue was being counted.
TEST_F(AuditorTest, ADeadLetterIsCountedOnceItIsKnownToHaveArrived) {
  create(kDead);
  create(kSteps, {{"RedrivePolicy", redrive_policy(kDead, 1)}, {"VisibilityTimeout", "1"}});
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "", 1), {{"m1.", "d", 1, 1}});
  pass(3 * kSecond);
  exchange(receive(kSteps), ReceiveMessageResult{});
  const CallNo counting = ask(GetQueueAttributes{ref_of(kDead), {"All"}});
  get(receive(kDead, "", 0), {{"m1.", "d", 1, 1, 2, kSteps}});
  count(counting, 0);
  count(ask(GetQueueAttributes{ref_of(kDead), {"All"}}), 1);
  EXPECT_THROW(count(ask(GetQueueAttributes{ref_of(kDead), {"All"}}), 0), Violation);
}

// World 76075369646319. Both positions of a message were chosen: the one from before it went to the
// dead-letter queue, and the one that it has since it came back.
TEST_F(AuditorTest, AMessageThatCameBackHasAPositionOfItsOwn) {
  create(kDead);
  create(kSteps, {{"RedrivePolicy", redrive_policy(kDead, 1)}});
  send_one("m1.", "d", 1, 1);
  const auto look = [this](const Found& found, const std::string& position) {
    StanchionPeek peek;
    peek.queue = ref_of(kSteps);
    const CallNo call = ask(peek);
    const ReceivedMessage there = received(found);
    PeekedMessage shown;
    shown.content = there.content;
    shown.sequence_number = there.sequence_number;
    shown.position = position;
    answer(call, StanchionPeekResult{.messages = {shown}, .next_token = {}});
  };
  look({"m1.", "d", 1, 1}, "before");
  get(receive(kSteps, "", 0), {{"m1.", "d", 1, 1}});
  exchange(receive(kSteps), ReceiveMessageResult{});
  exchange(StartMessageMoveTask{ref_of(kDead).arn(), ref_of(kSteps).arn(), {}},
           StartMessageMoveTaskResult{"handle"});
  look({"m1.", "d", 9, 2}, "after");
  ReceiveMessage chosen = receive(kSteps, "", 0);
  chosen.positions = {"before", "after"};
  get(chosen, {{"m1.", "d", 9, 2}});
  chosen.positions = {"before"};
  EXPECT_THROW(get(chosen, {{"m1.", "d", 9, 2, 2}}), Violation);
}

// World 777055044. The answer to the second receive was lost; when it was repeated there was a
// dead-letter queue, to which the message goes after this receive, not before.
TEST_F(AuditorTest, ARepeatedAttemptIsJudgedByTheRulesOfItsFirstTry) {
  create(kDead);
  create(kSteps);
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "", 0), {{"m1.", "d", 1, 1}});
  lose(ask(receive(kSteps, "attempt", 60)));
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 1));
  get(receive(kSteps, "attempt", 60), {{"m1.", "d", 1, 1, 2}});
}

TEST_F(AuditorTest, NothingIsHandedOutMoreOftenThanItsQueueAllows) {
  create(kDead);
  create(kSteps);
  send_one("m1.", "d", 1, 1);
  get(receive(kSteps, "", 0), {{"m1.", "d", 1, 1}});
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 1));
  EXPECT_THROW(get(receive(kSteps, "attempt", 60), {{"m1.", "d", 1, 1, 2}}), Violation);
}

// Groups a and b, each with a waiting message; group a is in front.
class LineOfGroups : public AuditorTest {
 protected:
  LineOfGroups() {
    create(kSteps);
    send_one("m1.", "d", 1, 1, "a");
    send_one("m2.", "e", 2, 2, "b");
  }

  static Found of_a(std::uint32_t count) {
    return {
        .body = "m1.", .deduplication_id = "d", .id = 1, .seq = 1, .count = count, .group = "a"};
  }
  static Found of_b(std::uint32_t count) {
    return {
        .body = "m2.", .deduplication_id = "e", .id = 2, .seq = 2, .count = count, .group = "b"};
  }
};

TEST_F(LineOfGroups, AGroupThatWaitedIsServedBeforeOneThatWasReceivedFrom) {
  get(receive(kSteps, "", 0), {of_a(1)});
  get(receive(kSteps, "", 0), {of_b(1)});
  get(receive(kSteps, "", 0), {of_a(2)});
  EXPECT_THROW(get(receive(kSteps, "", 0), {of_a(3)}), Violation);
}

TEST_F(LineOfGroups, TheOldestHeadGivesNoPlaceInFront) {
  get(receive(kSteps, "", 0), {of_a(1)});
  EXPECT_THROW(get(receive(kSteps, "", 0), {of_a(2)}), Violation);
}

TEST_F(LineOfGroups, OneAnswerIsInTheOrderOfTheLine) {
  get(receive(kSteps, "", 0), {of_a(1)});
  get(receive(kSteps, "", 0), {of_b(1), of_a(2)});
  get(receive(kSteps, "", 0), {of_b(2)});
  EXPECT_THROW(get(receive(kSteps, "", 0), {of_b(3), of_a(3)}), Violation);
}

// Its place begins when its visibility timeout ends, not when it was received.
TEST_F(LineOfGroups, AGroupWhoseMessageIsInFlightHasNoPlace) {
  get(receive(kSteps, "", 0), {of_a(1)});
  get(receive(kSteps, "", 10), {of_b(1)});
  get(receive(kSteps, "", 0), {of_a(2)});
  get(receive(kSteps, "", 0), {of_a(3)});
  pass(11 * kSecond);
  // When it became visible again, the other group had been waiting.
  get(receive(kSteps, "", 0), {of_a(4)});
  EXPECT_THROW(get(receive(kSteps, "", 0), {of_a(5)}), Violation);
}

TEST_F(LineOfGroups, AGroupThatMayHaveBeenReceivedFromHasAnyPlace) {
  get(receive(kSteps, "", 0), {of_a(1)});
  lose(ask(receive(kSteps, "", 0)));
  get(receive(kSteps, "", 0), {of_a(2)});
}

// World 900000427. A dead letter under way held its group back, nobody knows for how long.
TEST_F(LineOfGroups, AGroupOfWhichAMessageWasMovedHasAnyPlace) {
  send_one("m3.", "f", 3, 3, "b");
  create(kDead);
  set(kSteps, "RedrivePolicy", redrive_policy(kDead, 1));
  get(receive(kSteps, "", 0), {of_b(1)});
  set(kSteps, "RedrivePolicy", "");
  get(receive(kSteps, "", 0), {of_a(1)});
  get(receive(kDead, "", 0), {{"m2.", "e", 2, 1, 2, kSteps, "b"}});
  get(receive(kSteps, "", 0), {of_a(2)});
}

TEST_F(LineOfGroups, ARepeatedAttemptDoesNotStandInLine) {
  get(receive(kSteps, "attempt", 60), {of_a(1)});
  get(receive(kSteps, "attempt", 60), {of_a(1)});
}

class EmptyReceive : public AuditorTest {
 protected:
  // A receive that waits for two seconds, on a queue whose only message falls due a moment before.
  CallNo wait_for_a_delayed_message() {
    create(kSteps, {{"DelaySeconds", "2"}});
    send_one("m1.", "d", 1, 1);
    ReceiveMessage poll = receive(kSteps);
    poll.wait_time_seconds = 2;
    return ask(poll);
  }
  void pass_a_second() {
    for (int i = 0; i < 10; ++i) {
      pass(100 * kMillisecond);
      keeper.read();
    }
  }
};

TEST_F(EmptyReceive, HidesNoMessageThatIsDue) {
  const CallNo poll = wait_for_a_delayed_message();
  pass_a_second();
  pass_a_second();
  EXPECT_THROW(answer(poll, ReceiveMessageResult{}), Violation);
}

// World 970000261827. The wall clock was behind for a part of the wait, and ahead when it ended.
TEST_F(EmptyReceive, MayComeBeforeAMessageThatTimeWasTooSlowFor) {
  keeper.read();
  const CallNo poll = wait_for_a_delayed_message();
  world.move_wall(-600'000);
  pass_a_second();
  world.move_wall(700'000);
  pass_a_second();
  answer(poll, ReceiveMessageResult{});
}

TEST_F(AuditorTest, ACallFailsOfTheStoreOnlyIfThatFailed) {
  create(kSteps);
  const Reply failed = std::unexpected(Error{ErrorCode::kInternalFailure, "it cannot be read"});
  const CallNo early = ask(receive(kSteps));
  auditor.failing(true);
  const CallNo meanwhile = ask(receive(kSteps));
  auditor.failing(false);
  answer(early, failed);
  answer(meanwhile, failed);
  EXPECT_THROW(exchange(receive(kSteps), failed), Violation);
}

}  // namespace
}  // namespace stanchion::sim

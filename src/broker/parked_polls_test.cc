#include "broker/parked_polls.h"

#include <gtest/gtest.h>

#include <string>

namespace stanchion::broker {
namespace {

const QueueRef kOrders{"000000000000", "us-east-1", "orders"};
const QueueRef kLetters{"000000000000", "us-east-1", "letters"};

ParkedPolls::Poll poll(const QueueRef& queue, std::uint64_t ticket, std::int64_t deadline) {
  ReceiveMessage request;
  request.queue = queue;
  return {std::move(request), Ticket(ticket), SteadyInstant(Duration(deadline)), [](Reply) {},
          nullptr};
}

TEST(ParkedPolls, AQueueServesItsPollsInOrderOfArrival) {
  ParkedPolls polls;
  polls.park(poll(kOrders, 1, 300));
  polls.park(poll(kLetters, 2, 100));
  polls.park(poll(kOrders, 3, 200));
  EXPECT_EQ(polls.first_for(kOrders)->ticket, Ticket(1));
  EXPECT_EQ(polls.take_first_for(kOrders).ticket, Ticket(1));
  EXPECT_EQ(polls.take_first_for(kOrders).ticket, Ticket(3));
  EXPECT_EQ(polls.first_for(kOrders), nullptr);
  EXPECT_FALSE(polls.anyone_waits_for(kOrders));
  EXPECT_TRUE(polls.anyone_waits_for(kLetters));
  EXPECT_EQ(polls.size(), 1u);
}

TEST(ParkedPolls, TheNextDeadlineIsTheEarliestOfAllQueues) {
  ParkedPolls polls;
  EXPECT_EQ(polls.next_deadline(), SteadyInstant::max());
  polls.park(poll(kOrders, 1, 300));
  EXPECT_EQ(polls.next_deadline(), SteadyInstant(Duration(300)));
  polls.park(poll(kLetters, 2, 100));
  EXPECT_EQ(polls.next_deadline(), SteadyInstant(Duration(100)));
  polls.cancel(Ticket(2));
  EXPECT_EQ(polls.next_deadline(), SteadyInstant(Duration(300)));
  polls.take_first_for(kOrders);
  EXPECT_EQ(polls.next_deadline(), SteadyInstant::max());
}

TEST(ParkedPolls, PollsExpireInOrderOfTheirDeadlinesAndNotBefore) {
  ParkedPolls polls;
  polls.park(poll(kOrders, 1, 300));
  polls.park(poll(kOrders, 2, 100));
  polls.park(poll(kLetters, 3, 200));
  polls.park(poll(kOrders, 4, 200));
  EXPECT_FALSE(polls.take_expired(SteadyInstant(Duration(99))));
  EXPECT_EQ(polls.take_expired(SteadyInstant(Duration(250)))->ticket, Ticket(2));
  EXPECT_EQ(polls.take_expired(SteadyInstant(Duration(250)))->ticket, Ticket(3));
  EXPECT_EQ(polls.take_expired(SteadyInstant(Duration(250)))->ticket, Ticket(4));
  EXPECT_FALSE(polls.take_expired(SteadyInstant(Duration(250))));
  EXPECT_EQ(polls.take_expired(SteadyInstant(Duration(300)))->ticket, Ticket(1));
  EXPECT_TRUE(polls.empty());
}

TEST(ParkedPolls, ACancelledPollIsInNoOrderAnyMore) {
  ParkedPolls polls;
  polls.park(poll(kOrders, 1, 100));
  polls.park(poll(kOrders, 2, 200));
  EXPECT_EQ(polls.cancel(Ticket(1))->ticket, Ticket(1));
  EXPECT_EQ(polls.first_for(kOrders)->ticket, Ticket(2));
  EXPECT_FALSE(polls.take_expired(SteadyInstant(Duration(150))));
  EXPECT_FALSE(polls.cancel(Ticket(1)));
  EXPECT_FALSE(polls.cancel(Ticket(99)));
  EXPECT_EQ(polls.size(), 1u);
}

TEST(ParkedPolls, ATakenPollCannotBeCancelled) {
  ParkedPolls polls;
  polls.park(poll(kOrders, 1, 100));
  polls.take_first_for(kOrders);
  EXPECT_FALSE(polls.cancel(Ticket(1)));
  polls.park(poll(kOrders, 2, 100));
  polls.take_expired(SteadyInstant(Duration(100)));
  EXPECT_FALSE(polls.cancel(Ticket(2)));
}

TEST(ParkedPolls, TakingAllIsInOrderOfArrivalAndLeavesNothing) {
  ParkedPolls polls;
  polls.park(poll(kOrders, 1, 300));
  polls.park(poll(kLetters, 2, 100));
  polls.park(poll(kOrders, 3, 200));
  std::string order;
  for (const auto& taken : polls.take_all()) order += std::to_string(taken.ticket.value());
  EXPECT_EQ(order, "123");
  EXPECT_TRUE(polls.empty());
  EXPECT_EQ(polls.next_deadline(), SteadyInstant::max());
  EXPECT_FALSE(polls.anyone_waits_for(kOrders));
}

TEST(ParkedPolls, ManyPollsWithOneDeadlineAreAllKept) {
  ParkedPolls polls;
  for (std::uint64_t i = 1; i <= 1000; ++i) polls.park(poll(kOrders, i, 100));
  for (std::uint64_t i = 1; i <= 1000; ++i)
    ASSERT_EQ(polls.take_expired(SteadyInstant(Duration(100)))->ticket, Ticket(i));
  EXPECT_TRUE(polls.empty());
}

TEST(ParkedPolls, ThePollComesBackWithItsRequestAndItsAnswer) {
  ParkedPolls polls;
  int answers = 0;
  ParkedPolls::Poll parked = poll(kOrders, 1, 100);
  parked.request.max_number_of_messages = 7;
  parked.respond = [&](Reply reply) { answers += reply.has_value(); };
  polls.park(std::move(parked));
  auto taken = polls.take_first_for(kOrders);
  EXPECT_EQ(taken.request.max_number_of_messages, 7);
  taken.respond(ReceiveMessageResult{});
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace stanchion::broker

#include "net/reactor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

namespace stanchion::net {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

TEST(Reactor, PostsOfEachThreadRunInOrderOnTheReactor) {
  ReactorPool pool({.reactors = 1});
  ASSERT_TRUE(pool.start());
  constexpr int kThreads = 4;
  constexpr int kPosts = 5000;
  std::vector<int> last(kThreads, -1);
  std::latch done(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        pool[0].post([&, t, i] {
          EXPECT_TRUE(pool[0].is_current());
          int& previous = last[static_cast<std::size_t>(t)];
          EXPECT_EQ(previous, i - 1);
          previous = i;
          if (i == kPosts - 1) done.count_down();
        });
      }
    });
  }
  done.wait();
  for (std::thread& thread : threads) thread.join();
}

TEST(Reactor, ManyPostsLeaveTurnsForOthers) {
  ReactorPool pool({.reactors = 1});
  constexpr int kPosts = 20'000;
  std::latch done(2);
  int ran = 0;
  int ran_before_the_other = kPosts;
  Reactor& reactor = pool[0];
  // All posted before the start, so that the loop finds them together.
  reactor.post([&] {
    boost::asio::post(reactor.context(), [&] {
      ran_before_the_other = ran;
      done.count_down();
    });
  });
  for (int i = 0; i < kPosts; ++i)
    reactor.post([&, i] {
      EXPECT_EQ(ran, i);
      // Behind everything that was posted before, though there is no turn for it yet.
      if (i == 0)
        reactor.post([&] {
          EXPECT_EQ(std::exchange(ran, -1), kPosts);
          done.count_down();
        });
      ++ran;
    });
  ASSERT_TRUE(pool.start());
  done.wait();
  EXPECT_LT(ran_before_the_other, kPosts);
  EXPECT_EQ(ran, -1);
}

TEST(Reactor, PostsThatHadNoTurnAreDestroyed) {
  const auto owned = std::make_shared<int>();
  {
    ReactorPool pool({.reactors = 1});
    std::latch stopped(1);
    // The first turn ends the loop, and leaves some of them.
    for (int i = 0; i < 20'000; ++i)
      pool[0].post([&, i, owned] {
        if (i > 0) return;
        pool[0].stop();
        stopped.count_down();
      });
    ASSERT_TRUE(pool.start());
    stopped.wait();
    pool.stop();
    EXPECT_GT(owned.use_count(), 1);
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(Reactor, APostFromTheReactorItselfRunsLater) {
  ReactorPool pool({.reactors = 1});
  ASSERT_TRUE(pool.start());
  std::latch done(1);
  bool first_ended = false;
  pool[0].post([&] {
    pool[0].post([&] {
      EXPECT_TRUE(first_ended);
      done.count_down();
    });
    first_ended = true;
  });
  done.wait();
}

TEST(Reactor, WhatIsDeferredRunsWhenTheRoundEndsAndThenWhatThatDefers) {
  ReactorPool pool({.reactors = 1});
  std::latch done(1);
  std::string order;
  Reactor& reactor = pool[0];
  // All posted before the start, so that they are one round.
  reactor.post([&] {
    reactor.defer([&] {
      order += 'c';
      reactor.defer([&] {
        order += 'e';
        done.count_down();
      });
      order += 'd';
    });
    order += 'a';
  });
  reactor.post([&] { order += 'b'; });
  ASSERT_TRUE(pool.start());
  done.wait();
  EXPECT_EQ(order, "abcde");
}

TEST(Reactor, WhatLingersRunsWhileItIsWantedAndAfterWhatIsReady) {
  ReactorPool pool({.reactors = 1});
  std::latch done(1);
  std::string order;
  Reactor& reactor = pool[0];
  bool wanted = true;
  reactor.post([&] {
    reactor.linger([] { return true; },
                   [&] {
                     order += "lingered ";
                     done.count_down();
                   });
    reactor.linger([&] { return wanted; }, [&] { order += "unwanted "; });
    order += "first ";
  });
  reactor.post([&] {
    wanted = false;
    order += "ready ";
  });
  ASSERT_TRUE(pool.start());
  done.wait();
  pool.stop();
  EXPECT_EQ(order, "first ready lingered ");
}

TEST(Reactor, WhatIsPostedBeforeTheStartRunsAndAfterTheStopIsDestroyed) {
  const auto witness = std::make_shared<int>(0);
  {
    ReactorPool pool({.reactors = 2, .pin_threads = true});
    std::latch done(1);
    pool[1].post([&] { done.count_down(); });
    ASSERT_TRUE(pool.start());
    done.wait();
    pool.stop();
    pool[1].post([witness] { ADD_FAILURE() << "ran after the stop"; });
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
}

// As an exchange does that is dropped with its task.
TEST(Reactor, WhatIsPostedByATaskThatIsDestroyedIsDestroyed) {
  const auto witness = std::make_shared<int>(0);
  {
    ReactorPool pool({.reactors = 1});
    struct Posts {
      Posts(Reactor& on, std::shared_ptr<int> seen) : reactor(&on), witness(std::move(seen)) {}
      Posts(Posts&&) noexcept = default;
      ~Posts() {
        if (witness) reactor->post([kept = std::move(witness)] { ADD_FAILURE() << "ran"; });
      }
      Reactor* reactor;
      std::shared_ptr<int> witness;
    };
    pool[0].post([posts = Posts(pool[0], witness)] { ADD_FAILURE() << "ran"; });
  }
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(Timer, FiresOnceAtTheLastDeadlineThatWasSet) {
  ReactorPool pool({.reactors = 1});
  std::latch done(1);
  int fired = 0;
  const auto start = Clock::now();
  std::unique_ptr<Timer> timer;
  pool[0].post([&] {
    timer = std::make_unique<Timer>(pool[0], [&] {
      ++fired;
      EXPECT_GE(Clock::now() - start, milliseconds(30));
      EXPECT_FALSE(timer->armed());
      done.count_down();
    });
    timer->arm(start + std::chrono::hours(1));
    timer->arm(start + milliseconds(5));
    timer->arm(start + milliseconds(30));
  });
  ASSERT_TRUE(pool.start());
  done.wait();
  pool.stop();
  EXPECT_EQ(fired, 1);
}

TEST(Timer, ACancelledOrDestroyedTimerDoesNotFire) {
  ReactorPool pool({.reactors = 1});
  std::latch done(1);
  std::unique_ptr<Timer> cancelled;
  std::unique_ptr<Timer> destroyed;
  std::unique_ptr<Timer> later;
  pool[0].post([&] {
    const auto never = [] { ADD_FAILURE() << "fired"; };
    cancelled = std::make_unique<Timer>(pool[0], never);
    destroyed = std::make_unique<Timer>(pool[0], never);
    later = std::make_unique<Timer>(pool[0], [&] { done.count_down(); });
    cancelled->arm(Clock::now() + milliseconds(5));
    destroyed->arm(Clock::now() + milliseconds(5));
    later->arm(Clock::now() + milliseconds(15));
    cancelled->cancel();
    destroyed.reset();
  });
  ASSERT_TRUE(pool.start());
  done.wait();
  pool.stop();
}

}  // namespace
}  // namespace stanchion::net

#include "net/reactor.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <string>
#include <utility>

#include "base/check.h"

namespace stanchion::net {
namespace asio = boost::asio;

namespace {

thread_local Reactor* current_reactor = nullptr;

// About the time that a client on the same machine takes to answer.
constexpr auto kLinger = std::chrono::microseconds(100);

// Posted tasks that run before sockets and timers have their turn: so many, or for so long. Some take
// milliseconds, as an answer of megabytes does.
constexpr int kTasksPerTurn = 1024;
constexpr auto kTurnMax = std::chrono::milliseconds(5);

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

}  // namespace

// The inbox is a stack onto which posting threads push with one compare-and-swap; the loop takes
// all of it and reverses it. A thread that pushes onto an empty stack wakes the loop. What was taken
// and is more than a turn may do comes first in the next turn.
struct Reactor::Impl {
  struct Node {
    Task task;
    Node* next = nullptr;
  };

  // A task that is destroyed may post another: an exchange does, to be dropped on its reactor.
  void destroy_inbox() {
    do {
      while (taken != nullptr) delete std::exchange(taken, taken->next);
    } while ((taken = take_all()) != nullptr);
  }

  // Oldest first.
  Node* take_all() {
    Node* newest = inbox.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* next = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = next;
    }
    return oldest;
  }

  void run_deferred() {
    in_round = false;
    for (Task& task : std::exchange(deferred, {})) task();
  }

  // One turn, and another one later if there is more to do.
  void run_inbox(Reactor& reactor) {
    {
      const Round round(reactor);
      run_some();
    }
    // While an earlier part was left, nobody may have been woken for what came behind it.
    if (taken == nullptr && inbox.load(std::memory_order_relaxed) == nullptr) return;
    if (std::exchange(going_on, true)) return;
    asio::post(context, [this, &reactor] {
      going_on = false;
      run_inbox(reactor);
    });
  }

  void run_some() {
    if (taken == nullptr) taken = take_all();
    const SteadyTime end = std::chrono::steady_clock::now() + kTurnMax;
    for (int left = kTasksPerTurn; taken != nullptr && left > 0; --left) {
      const std::unique_ptr<Node> owned(std::exchange(taken, taken->next));
      owned->task();
      if (std::chrono::steady_clock::now() >= end) return;
    }
  }

  struct Lingering {
    Wanted wanted;
    Task task;
    SteadyTime until;
  };

  void linger(Lingering one) {
    asio::post(context, [this, one = std::move(one)]() mutable {
      if (!one.wanted()) return;
      if (std::chrono::steady_clock::now() < one.until) return linger(std::move(one));
      one.task();
    });
  }

  // The loop is the only thread that touches sockets and timers, so Asio need not lock them; its
  // queue of handlers keeps its lock, because any thread may call post().
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO};
  std::atomic<Node*> inbox = nullptr;
  Node* taken = nullptr;  // From the inbox, oldest first, and not run yet.
  bool going_on = false;  // Another turn is scheduled.
  bool in_round = false;
  std::vector<Task> deferred;  // Until the round ends.
};

Reactor::Reactor(std::size_t index) : index_(index), impl_(std::make_unique<Impl>()) {}
Reactor::~Reactor() {
  impl_->destroy_inbox();
}

void Reactor::post(Task task) {
  auto* node = new Impl::Node{std::move(task)};
  Impl::Node* head = impl_->inbox.load(std::memory_order_relaxed);
  do {
    node->next = head;
  } while (!impl_->inbox.compare_exchange_weak(head, node, std::memory_order_release,
                                               std::memory_order_relaxed));
  if (head != nullptr) return;
  asio::post(impl_->context, [this] { impl_->run_inbox(*this); });
}

void Reactor::defer(Task task) {
  if (!impl_->in_round) return asio::post(impl_->context, std::move(task));
  impl_->deferred.push_back(std::move(task));
}

void Reactor::linger(Wanted wanted, Task task) {
  impl_->linger({std::move(wanted), std::move(task), std::chrono::steady_clock::now() + kLinger});
}

Reactor::Round::Round(Reactor& reactor) : reactor_(reactor) {
  CHECK(!reactor.impl_->in_round, "one round at a time");
  reactor.impl_->in_round = true;
}

Reactor::Round::~Round() {
  reactor_.impl_->run_deferred();
}

Reactor* Reactor::current() {
  return current_reactor;
}

asio::io_context& Reactor::context() {
  return impl_->context;
}

void Reactor::run() {
  CHECK(current_reactor == nullptr, "a thread runs one reactor");
  current_reactor = this;
  pthread_setname_np(pthread_self(), ("reactor-" + std::to_string(index_)).substr(0, 15).c_str());
  const auto work = asio::make_work_guard(impl_->context);
  impl_->context.run();
  current_reactor = nullptr;
}

void Reactor::stop() {
  impl_->context.stop();
}

struct Timer::Impl : std::enable_shared_from_this<Timer::Impl> {
  Impl(Reactor& on, Task task) : reactor(on), on_due(std::move(task)), timer(on.context()) {}

  void sleep_until(SteadyTime when) {
    wakes_at = when;
    timer.expires_at(when);  // Ends the current sleep with an error code.
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& ec) {
      if (!ec) self->woke();
    });
  }

  void woke() {
    wakes_at = SteadyTime::max();
    if (due == SteadyTime::max()) return;
    if (std::chrono::steady_clock::now() < due) return sleep_until(due);
    due = SteadyTime::max();
    on_due();
  }

  Reactor& reactor;
  Task on_due;
  asio::steady_timer timer;
  SteadyTime due = SteadyTime::max();       // The deadline that the owner set; max: none.
  SteadyTime wakes_at = SteadyTime::max();  // When the current sleep ends; max: not sleeping.
};

Timer::Timer(Reactor& reactor, Task on_due)
    : impl_(std::make_shared<Impl>(reactor, std::move(on_due))) {}

Timer::~Timer() {
  impl_->due = SteadyTime::max();
  impl_->timer.cancel();
}

void Timer::arm(SteadyTime when) {
  CHECK(when != SteadyTime::max(), "a deadline that never comes is cancel()");
  impl_->due = when;
  if (when < impl_->wakes_at) impl_->sleep_until(when);
}

void Timer::cancel() {
  impl_->due = SteadyTime::max();
}

bool Timer::armed() const {
  return impl_->due != SteadyTime::max();
}

ReactorPool::ReactorPool(ReactorPoolOptions options) : options_(options) {
  if (options_.reactors == 0) options_.reactors = usable_cpus().size();
  for (std::size_t i = 0; i < options_.reactors; ++i) {
    reactors_.push_back(std::make_unique<Reactor>(i));
  }
}

ReactorPool::~ReactorPool() {
  stop();
}

Status ReactorPool::start() {
  CHECK(!running(), "a pool starts once");
  std::signal(SIGPIPE, SIG_IGN);
  for (const auto& reactor : reactors_) {
    threads_.emplace_back([loop = reactor.get()] { loop->run(); });
    if (options_.pin_threads) RETURN_IF_FAILED(pin(threads_.back(), reactor->index()));
  }
  return {};
}

Status ReactorPool::pin(std::thread& thread, std::size_t index) {
  const std::vector<int> cpus = usable_cpus();
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpus[index % cpus.size()]), &set);
  const int error = pthread_setaffinity_np(thread.native_handle(), sizeof set, &set);
  if (error != 0) return fail("cannot pin a reactor thread to its CPU", error);
  return {};
}

void ReactorPool::stop() {
  CHECK(Reactor::current() == nullptr, "a reactor cannot wait for itself to end");
  for (const auto& reactor : reactors_) reactor->stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace stanchion::net

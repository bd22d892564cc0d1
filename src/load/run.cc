#include "load/run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>

#include "load/loads.h"
#include "net/url.h"

namespace stanchion::load {
namespace {

constexpr std::size_t kBodyBytesPerBatch = 256 * 1024;
// From this size on, computing every MD5 would make the client the slower side.
constexpr std::size_t kSampledFrom = 16 * 1024;
constexpr std::size_t kSampledEvery = 16;

using std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

// Raises the limit of open files for the connections.
void raise_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Whether a terminal cannot overwrite a line.
bool is_dumb_terminal() {
  const char* terminal = std::getenv("TERM");
  const std::string_view name = terminal == nullptr ? "" : terminal;
  return name.empty() || name == "dumb";
}

// Sends prepared requests one after another on one connection: for things that are done once.
class Calls final : public Load {
 public:
  using Write = std::function<void(std::string& request, std::size_t index)>;
  using Take = std::function<bool(std::size_t index, std::string_view body)>;
  Calls(std::size_t count, Write write, Take take)
      : count_(count), write_(std::move(write)), take_(std::move(take)) {}

  bool begins_unit(const Worker&) const override { return false; }
  Next next(Worker& worker, Time) override {
    if (worker.index != 0 || at_ == count_ || failed_) return Next::kDone;
    write_(worker.request, at_);
    worker.step = Worker::Step::kSend;
    return Next::kRequest;
  }
  bool on_reply(Worker& worker, std::string_view body, Time) override {
    worker.step = Worker::Step::kIdle;
    return take_(at_++, body);
  }
  void on_failure(Worker& worker) override {
    worker.step = Worker::Step::kIdle;
    failed_ = true;
  }
  bool finished(Time) const override { return failed_; }

 private:
  const std::size_t count_;
  Write write_;
  Take take_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

class Run {
 public:
  Run(const Options& options, net::Url url, const std::atomic<bool>& interrupted,
      const Complain& complain)
      : options_(options),
        complain_(complain),
        url_(std::move(url)),
        loop_(interrupted, [this](Time now) { show_progress(now); }),
        run_(std::random_device{}() & 0xFFFFFF),
        ledger_({.queues = queue_count(),
                 .groups = options.group_count(),
                 .body_size = options.body_size,
                 .fifo = options.fifo,
                 .check_every = check_every()},
                run_),
        writer_(options_, url_),
        shared_{options_, writer_, ledger_, outcome_.stats, outcome_.errors, done_} {}

  Result<Outcome> run();

 private:
  std::size_t queue_count() const {
    return options_.workload == Workload::kWakeUp ? 2 : options_.queues;
  }
  std::size_t check_every() const {
    return options_.check_every.value_or(options_.body_size >= kSampledFrom ? kSampledEvery : 1);
  }

  Status make_queues();
  void delete_queues();
  Status fill(std::uint64_t messages);
  Status measure();
  Status measure_by_rounds();
  Status measure_cycle(Window& window);
  Status drain();
  Window new_window() const;
  void show_progress(Time now);
  void clear_progress();
  std::string queue_name(std::size_t index) const;
  std::optional<double> seconds_left(Time now, double rate) const;
  double cpu_at_work() const { return cpu_seconds() - loop_.spun_seconds(); }
  // The share of a core that was used for work since then.
  double share_of_core(double cpu_before, double seconds) const {
    return seconds > 0 ? std::max(0.0, cpu_at_work() - cpu_before) / seconds : 0;
  }

  const Options& options_;
  const Complain& complain_;
  const net::Url url_;
  LoadLoop loop_;
  const std::uint32_t run_;
  Ledger ledger_;
  RequestWriter writer_;
  Outcome outcome_;
  std::uint64_t done_ = 0;
  Shared shared_;
  std::string doing_ = "connecting";
  const Window* window_ = nullptr;  // Of the measured operation, while it is measured.
  Time shown_{};
  std::uint64_t shown_done_ = 0;
  bool showing_ = false;
};

std::string Run::queue_name(std::size_t index) const {
  if (!options_.queue.empty() && index == 0) return options_.queue;
  return fmt::format("bench-{:06x}-{}{}", run_, index, options_.fifo ? ".fifo" : "");
}

Status Run::make_queues() {
  doing_ = "making queues";
  // Long enough that no message becomes visible again during the measurement.
  Pairs attributes{{"VisibilityTimeout", "1800"}};
  if (options_.fifo) attributes.emplace_back("FifoQueue", "true");
  if (!options_.queue.empty()) attributes.erase(attributes.begin());
  Calls calls(
      queue_count(),
      [&](std::string& request, std::size_t i) {
        writer_.create_queue(request, queue_name(i), attributes);
      },
      [&](std::size_t, std::string_view body) {
        const std::string_view url = find_value(options_.protocol, body, "QueueUrl");
        if (!url.empty()) writer_.add_queue(url);
        return !url.empty();
      });
  RETURN_IF_FAILED(loop_.run(calls, 0));
  if (loop_.errors().total() > 0) return fail(fmt::format("CreateQueue: {}", loop_.errors().first));
  return {};
}

void Run::delete_queues() {
  if (options_.keep || !options_.queue.empty() || loop_.errors().total() > 0) return;
  loop_.ignore_interrupts();
  Calls calls(
      writer_.queue_count(),
      [&](std::string& request, std::size_t i) { writer_.delete_queue(request, i); },
      [](std::size_t, std::string_view) { return true; });
  if (const Status deleted = loop_.run(calls, 0); !deleted)
    complain_(fmt::format("the queues bench-{:06x}-… are left: {}", run_, deleted.error().message));
}

Window Run::new_window() const {
  const Time now = steady_clock::now();
  if (options_.count > 0) return Window(now, now, options_.count);
  const Time from = now + to_duration(options_.warm_up);
  return Window(from, from + to_duration(options_.seconds), 0);
}

Status Run::fill(std::uint64_t messages) {
  if (messages == 0) return {};
  const Time now = steady_clock::now();
  Window all(now, now, messages);
  const std::size_t batch = std::clamp<std::size_t>(kBodyBytesPerBatch / options_.body_size, 1, 10);
  SendLoad load(shared_, all, false, batch);
  return loop_.run(load, 0);
}

Status Run::measure_by_rounds() {
  const bool receives = options_.workload == Workload::kReceive;
  Receipts receipts(writer_.queue_count());
  const double wanted = options_.count > 0 ? 0 : options_.seconds;
  double cpu = 0;
  for (bool warm = options_.count == 0; !loop_.interrupted();) {
    std::uint64_t messages = options_.round * writer_.queue_count();
    doing_ = "filling";
    RETURN_IF_FAILED(fill(messages));
    const auto timed = [&](Load& load, bool counts) -> Status {
      const Time began = steady_clock::now();
      const double cpu_before = cpu_at_work();
      RETURN_IF_FAILED(loop_.run(load, counts ? options_.rate : 0));
      if (counts) {
        outcome_.seconds += std::chrono::duration<double>(steady_clock::now() - began).count();
        cpu += cpu_at_work() - cpu_before;
      }
      return {};
    };
    doing_ = receives ? "receiving" : "filling";
    ReceiveLoad receive(shared_, receives && !warm, receipts, messages);
    RETURN_IF_FAILED(timed(receive, receives && !warm));
    if (receive.received() < messages && !loop_.interrupted())
      return fail(
          fmt::format("{} messages were sent and only {} came back", messages, receive.received()));
    doing_ = "deleting";
    DeleteLoad remove(shared_, !receives && !warm, receipts);
    RETURN_IF_FAILED(timed(remove, !receives && !warm));
    const std::uint64_t done = outcome_.stats[headline(options_.workload)].messages;
    if (!warm && (options_.count > 0 ? done >= options_.count : outcome_.seconds >= wanted)) break;
    warm = false;
  }
  outcome_.client_cpu = outcome_.seconds > 0 ? std::max(0.0, cpu) / outcome_.seconds : 0;
  return {};
}

Status Run::measure_cycle(Window& window) {
  const bool takes_all = options_.backlog == 0 && options_.queue.empty();
  CycleLoad load(shared_, window,
                 takes_all ? CycleLoad::Ending::kTakeAll : CycleLoad::Ending::kLeave);
  RETURN_IF_FAILED(loop_.run(load, options_.rate));
  if (takes_all && !loop_.interrupted()) ledger_.set_drained();
  return {};
}

Status Run::measure() {
  if (options_.workload == Workload::kReceive || options_.workload == Workload::kDelete)
    return measure_by_rounds();
  doing_ = name_of(options_.workload);
  Window window = new_window();
  window_ = &window;
  done_ = shown_done_ = 0;
  const double cpu_before = cpu_at_work();
  const Time began = steady_clock::now();
  Status status;
  if (options_.workload == Workload::kSend) {
    SendLoad load(shared_, window, true, options_.batch);
    status = loop_.run(load, options_.rate);
  } else if (options_.workload == Workload::kCycle) {
    status = measure_cycle(window);
  } else if (options_.workload == Workload::kWakeUp) {
    WakeUpLoad load(shared_, window);
    status = loop_.run(load, 0);
  } else {
    std::string body = options_.http_body;
    if (body.empty()) {
      body = "{\"QueueUrl\":\"http://127.0.0.1:9324/000000000000/bench\",\"MessageBody\":\"";
      ledger_.append_body(body, {});
      body += "\"}";
    }
    HttpLoad load(shared_, window, std::move(body));
    status = loop_.run(load, options_.rate);
  }
  const Time ended = steady_clock::now();
  window_ = nullptr;
  window.close(ended);
  outcome_.seconds = window.seconds();
  outcome_.client_cpu =
      share_of_core(cpu_before, std::chrono::duration<double>(ended - began).count());
  return status;
}

// Receives what is left and compares it with what was sent.
Status Run::drain() {
  if (!options_.drain || loop_.interrupted()) return {};
  doing_ = "draining";
  const Time now = steady_clock::now();
  Window closed(now, now, 0);
  Stats unmeasured;
  Options batches = options_;
  batches.batch = 10;
  Shared shared{batches, writer_, ledger_, unmeasured, outcome_.errors, done_};
  CycleLoad load(shared, closed, CycleLoad::Ending::kTakeAll);
  RETURN_IF_FAILED(loop_.run(load, 0));
  if (!loop_.interrupted()) ledger_.set_drained();
  return {};
}

Result<Outcome> Run::run() {
  raise_files_limit();
  outcome_.check_every = check_every();
  RETURN_IF_FAILED(loop_.open({url_.host, url_.port, url_.tls, options_.trust, options_.busy_poll},
                              options_.connections));
  Status done;
  if (options_.uses_queues()) done = make_queues();
  doing_ = "filling";
  if (done && options_.workload != Workload::kWakeUp) done = fill(options_.backlog);
  if (done) done = measure();
  if (done) done = drain();
  outcome_.interrupted = loop_.interrupted();
  clear_progress();
  // Even after a failure, everything created here is removed.
  if (options_.uses_queues()) delete_queues();
  if (!done) return std::unexpected(done.error());
  outcome_.findings = ledger_.findings();
  outcome_.errors.refused += loop_.errors().refused;
  outcome_.errors.broken += loop_.errors().broken;
  if (outcome_.errors.first.empty()) outcome_.errors.first = loop_.errors().first;
  return outcome_;
}

std::optional<double> Run::seconds_left(Time now, double rate) const {
  const bool by_rounds =
      options_.workload == Workload::kReceive || options_.workload == Workload::kDelete;
  if (options_.count > 0 && window_ != nullptr && rate > 0)
    return static_cast<double>(options_.count - std::min(done_, options_.count)) / rate;
  if (options_.count > 0) return std::nullopt;
  if (window_ != nullptr) return window_->seconds_left(now);
  if (by_rounds) return std::max(0.0, options_.seconds - outcome_.seconds);
  return std::nullopt;
}

void Run::show_progress(Time now) {
  static const bool shows = ::isatty(STDERR_FILENO) != 0 && !is_dumb_terminal();
  if (options_.quiet || options_.json || !shows) return;
  const double since = std::chrono::duration<double>(now - shown_).count();
  if (since < 1) return;
  if (shown_ != Time{}) {
    const double rate = static_cast<double>(done_ - shown_done_) / since;
    const bool warms_up = window_ != nullptr && window_->warms_up(now);
    fmt::print(stderr, "\r\033[K{}",
               to_line({.doing = warms_up ? doing_ + ", warming up" : doing_,
                        .messages_per_second = rate,
                        .latency = outcome_.stats[headline(options_.workload)].latency,
                        .seconds_left = seconds_left(now, rate)}));
    std::fflush(stderr);
    showing_ = true;
  }
  shown_ = now;
  shown_done_ = done_;
}

void Run::clear_progress() {
  if (showing_) fmt::print(stderr, "\r\033[K");
}

}  // namespace

Result<Outcome> run(const Options& options, const std::atomic<bool>& interrupted,
                    const Complain& complain) {
  if (options.workload == Workload::kFdatasync) return run_fdatasync(options, interrupted);
  auto url = net::parse_url(options.endpoint);
  if (!url) return fail(fmt::format("--endpoint: {}", url.error().message));
  auto outcome = Run(options, std::move(*url), interrupted, complain).run();
  if (!outcome) return fail(fmt::format("{}: {}", options.endpoint, outcome.error().message));
  return outcome;
}

}  // namespace stanchion::load

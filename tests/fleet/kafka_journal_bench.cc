// What a group commit on Kafka costs: the median of a lone append relative to a lone produce by
// librdkafka, appends per second with 64 outstanding, and how long a promotion takes. Against the
// brokers of scripts/fleet-kafka, or others:
//
//   scripts/fleet-kafka start && build/release/tests/kafka_journal_bench [BROKERS [SECONDS]]
//
// Lone appends and lone produces take turns, so that both see the same brokers.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kafka/admin.h"
#include "kafka/client_conf.h"
#include "kafka/kafka_shared_journal.h"

namespace stanchion::kafka {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::size_t kRecordSize = 300;
constexpr std::uint64_t kOutstanding = 64;

[[noreturn]] void give_up(const Failure& failure) {
  std::fprintf(stderr, "%s\n", failure.message.c_str());
  std::exit(1);
}

template <class T>
T need(Result<T> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

microseconds since(Clock::time_point then) {
  return std::chrono::duration_cast<microseconds>(Clock::now() - then);
}

long long median(std::vector<microseconds> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2].count();
}

// A producer with the same settings, without a journal: the caller polls for the report.
class LoneProducer {
 public:
  LoneProducer(const KafkaSettings& settings, const std::string& topic, std::int32_t partition)
      : partition_(partition) {
    ClientConf conf = need(ClientConf::common(settings));
    need(conf.for_producer(settings));
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_dr_msg_cb(
        conf.get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
          CHECK(message->err == RD_KAFKA_RESP_ERR_NO_ERROR, "the brokers take it");
          static_cast<LoneProducer*>(opaque)->done_ = true;
        });
    client_ = need(std::move(conf).make(RD_KAFKA_PRODUCER));
    topic_.reset(rd_kafka_topic_new(client_.get(), topic.c_str(), nullptr));
  }

  microseconds produce(std::string& bytes) {
    const auto began = Clock::now();
    done_ = false;
    const int outcome = rd_kafka_produce(topic_.get(), partition_, 0, bytes.data(), bytes.size(),
                                         nullptr, 0, nullptr);
    CHECK(outcome == 0, "the client takes it");
    while (!done_) rd_kafka_poll(client_.get(), 100);
    return since(began);
  }

 private:
  std::int32_t partition_;
  bool done_ = false;
  Client client_;
  Topic topic_;
};

// A replica that reads as its node does, and becomes the owner.
class Replica {
 public:
  Replica(KafkaConnection& connection, const ShardLog& log)
      : journal_(connection, log, entropy_, {}) {
    journal_.write_format(journal::kLogEntryVersion);
    journal_.follow(Position(1), std::nullopt, [this] {
      {
        const std::lock_guard lock(mutex_);
        arrived_ = true;
      }
      changed_.notify_one();
    });
    while (!journal_.has_reached_end()) (void)read();
  }

  // Returns how long it takes.
  microseconds own() {
    const auto began = Clock::now();
    journal_.claim();
    for (auto progress = read(); progress != Progress::kOwned; progress = read())
      CHECK(progress != Progress::kRefused, "nobody else claims the log");
    return since(began);
  }

  KafkaSharedJournal& journal() { return journal_; }

 private:
  using Progress = journal::SharedJournal::Progress;

  // Reads what is at hand, when something is.
  Progress read() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return arrived_; });
      arrived_ = false;
    }
    auto progress = Progress::kMore;
    while (progress == Progress::kMore)
      progress = need(journal_.read(1 << 20, [](Position, std::string_view) { return Status(); }));
    return progress;
  }

  os::SystemEntropy entropy_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false;
  KafkaSharedJournal journal_;  // Ends first.
};

class Appender {
 public:
  Appender(KafkaConnection& connection, const ShardLog& log)
      : replica_(connection, log), claimed_in_(replica_.own()) {
    replica_.journal().start({.durable =
                                  [this](Position position) {
                                    {
                                      const std::lock_guard lock(mutex_);
                                      durable_ = position;
                                    }
                                    changed_.notify_one();
                                  },
                              .superseded =
                                  [this] {
                                    give_up(replica_.journal().refusal().value_or(
                                        Failure{"another node has claimed the log"}));
                                  },
                              .failed = give_up});
  }

  void append(const std::string& record) {
    last_ = replica_.journal().append(record);
    replica_.journal().flush();
  }
  // Until at most `count` records are not durable.
  void wait_for_room(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return durable_.value() + count >= last_.value(); });
  }
  microseconds append_alone(const std::string& record) {
    const auto began = Clock::now();
    append(record);
    wait_for_room(0);
    return since(began);
  }
  journal::JournalFigures figures() { return replica_.journal().figures(); }
  microseconds claimed_in() const { return claimed_in_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Position durable_;
  Position last_;
  Replica replica_;  // Ends before what its events use.
  microseconds claimed_in_;
};

void compare_alone(Appender& appender, const KafkaSettings& settings, const std::string& topic,
                   std::chrono::seconds time) {
  // In a partition of its own: in the journal's it would make gaps. Both are led by some broker.
  LoneProducer lone(settings, topic, 1);
  std::string record(kRecordSize, 'x');
  std::vector<microseconds> appends;
  std::vector<microseconds> produces;
  // Brokers are slow until their code is compiled.
  for (const auto warm = Clock::now() + time; Clock::now() < warm;) {
    (void)appender.append_alone(record);
    (void)lone.produce(record);
  }
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    appends.push_back(appender.append_alone(record));
    produces.push_back(lone.produce(record));
  }
  const long long append = median(appends);
  const long long produce = median(produces);
  std::printf("lone append %lld us, lone produce %lld us, ratio %.2f (%zu each)\n", append, produce,
              static_cast<double>(append) / static_cast<double>(produce), appends.size());
}

void append_many(Appender& appender, std::chrono::seconds time) {
  const std::string record(kRecordSize, 'x');
  const std::uint64_t commits = appender.figures().commits;
  std::uint64_t count = 0;
  const auto began = Clock::now();
  for (const auto end = began + time; Clock::now() < end; ++count) {
    appender.wait_for_room(kOutstanding - 1);
    appender.append(record);
  }
  appender.wait_for_room(0);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const auto entries = static_cast<double>(appender.figures().commits - commits);
  std::printf("%.0f appends/s with %llu outstanding, %.1f in an entry\n",
              static_cast<double>(count) / seconds, static_cast<unsigned long long>(kOutstanding),
              static_cast<double>(count) / entries);
}

// How long a standby that has read everything takes to become the owner.
void promote(const KafkaSettings& settings, const ShardLog& log) {
  const auto connection = need(KafkaConnection::open(settings));
  std::vector<microseconds> times;
  for (int i = 0; i < 9; ++i) times.push_back(Replica(*connection, log).own());
  std::printf("promotion of a standby: %lld us\n", median(times));
}

void run(const std::string& brokers, std::chrono::seconds time) {
  KafkaSettings settings;
  settings.brokers = brokers;
  const auto connection = need(KafkaConnection::open(settings));
  const std::string topic = "stanchion-bench-" + std::to_string(os::SystemEntropy().u64());
  KafkaAdmin admin(*connection);
  need(admin.create_topic(topic, 2, false));
  for (const std::string& warning : need(admin.verify_topic(topic, 2, false)))
    std::printf("%s\n", warning.c_str());
  const ShardLog log{.partition = {topic, 0}, .fleet = 1, .shard = {}, .node = 1};
  Appender appender(*connection, log);
  std::printf("claim of an empty log: %lld us\n",
              static_cast<long long>(appender.claimed_in().count()));
  compare_alone(appender, settings, topic, time);
  append_many(appender, time);
  promote(settings, log);
}

}  // namespace
}  // namespace stanchion::kafka

int main(int argc, char** argv) {
  const std::string brokers =
      argc > 1 ? argv[1] : "127.0.0.1:19091,127.0.0.1:19092,127.0.0.1:19093";
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  stanchion::kafka::run(brokers, std::chrono::seconds(seconds > 0 ? seconds : 10));
  return 0;
}

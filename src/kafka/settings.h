// How a node reaches its Kafka brokers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stanchion::kafka {

// The largest batch that a topic must accept: an entry of a log, and what Kafka adds to it.
inline constexpr std::uint32_t kMessageSizeMax = 8 << 20;

struct KafkaSettings {
  std::string brokers;  // HOST:PORT, separated by commas.

  // TLS and authentication, by librdkafka's names: security.protocol, sasl.*, ssl.*,
  // enable.ssl.certificate.verification.
  std::vector<std::pair<std::string, std::string>> security;

  std::string client_id = "stanchion";

  // How long a broker may take to answer; then the request is made again, where need be to another
  // broker. Less makes a silent broker's loss shorter, and a slow broker's work longer.
  std::chrono::milliseconds request_timeout{3000};

  // An entry that is not acknowledged for so long, while later ones are, makes the client begin anew.
  std::chrono::milliseconds stuck_after{20'000};

  // What is read ahead of a partition for whoever reads it; at most one fetch more.
  std::size_t read_ahead_max = std::size_t{64} << 20;

  // Whether batches are verified before they are read. Of one that does not match its checksum,
  // librdkafka 2.0.2 reads on in the middle and may end the process by an assertion, so the logs of
  // shards do without: their entries have checksums, and none may be missing (LogJudge, KF2, KF4).
  // Control logs are read only with it: their records have no checksum of their own.
  bool verifies_batches = true;

  // A log that shows nothing, or that its broker cannot read, is given up after this time, if a broker
  // says that it goes on.
  std::chrono::milliseconds silent_after{30'000};

  // What a person should know and no caller waits for. Called by any thread.
  std::function<void(std::string_view)> warn = [](std::string_view) {};
};

// Whether `security` names only what it may: other settings of librdkafka could lose data.
Status check_security(const KafkaSettings& settings);

// A shard's log is one partition.
struct Partition {
  std::string topic;
  std::int32_t number = 0;

  std::string text() const { return topic + "[" + std::to_string(number) + "]"; }
  friend auto operator<=>(const Partition&, const Partition&) = default;
};

}  // namespace stanchion::kafka

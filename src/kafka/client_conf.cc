#include "kafka/client_conf.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "journal/log_entry.h"
#include "os/silence.h"

namespace stanchion::kafka {
namespace {

constexpr std::size_t kErrorTextMax = 512;
constexpr std::size_t kBatchSize = 1'000'000;
constexpr std::size_t kBatchOverhead = 1024;
// An answer to a fetch, of all partitions together. It may exceed this only by what is around batches:
// the client asks for more and more if it is shown something that it cannot parse, and a broker believes
// a size that has changed on its disk.
constexpr std::size_t kFetchMax = std::size_t{50} << 20;
constexpr std::size_t kFetchOverhead = std::size_t{1} << 20;
static_assert(kMessageSizeMax <= kFetchMax);
static_assert(kBatchSize + journal::kLogEntrySizeMax + kBatchOverhead <= kMessageSizeMax);

// A broker whose machine does not even confirm that it has received something has gone, or the way
// to it. Without this a connection is not given up before a request has been waited for in vain.
constexpr std::chrono::milliseconds kUnconfirmedMax{1500};

// As librdkafka opens its sockets by itself, otherwise.
int open_socket(int domain, int type, int protocol, void*) {
  const int fd = ::socket(domain, type | SOCK_CLOEXEC, protocol);
  if (fd >= 0) os::limit_silence(fd, kUnconfirmedMax);
  return fd;
}

bool is_security(std::string_view name) {
  return name == "security.protocol" || name == "enable.ssl.certificate.verification" ||
         name.starts_with("sasl.") || name.starts_with("ssl.");
}

}  // namespace

Status check_security(const KafkaSettings& settings) {
  bool sasl = false;
  std::string_view mechanism = "GSSAPI";  // librdkafka's default.
  for (const auto& [name, value] : settings.security) {
    if (!is_security(name))
      return fail("\"" + name +
                  "\" cannot be set for Kafka: only security.protocol, sasl.*, ssl.* and "
                  "enable.ssl.certificate.verification can, because the others decide whether "
                  "data is lost");
    if (name == "security.protocol") sasl = value.starts_with("SASL") || value.starts_with("sasl");
    if (name == "sasl.mechanisms" || name == "sasl.mechanism") mechanism = value;
  }
  if (sasl && mechanism == "GSSAPI")
    return fail(
        "Kerberos is not supported for Kafka: set sasl.mechanisms to SCRAM-SHA-512, "
        "SCRAM-SHA-256, PLAIN or OAUTHBEARER");
  return {};
}

Status ClientConf::set(std::string_view name, std::string_view value) {
  std::array<char, kErrorTextMax> reason{};
  if (rd_kafka_conf_set(conf_.get(), std::string(name).c_str(), std::string(value).c_str(),
                        reason.data(), reason.size()) == RD_KAFKA_CONF_OK)
    return {};
  return fail("Kafka's client refuses the setting " + std::string(name) + ": " + reason.data());
}

Result<ClientConf> ClientConf::common(const KafkaSettings& settings) {
  if (settings.brokers.empty()) return fail("no Kafka broker is named: give HOST:PORT,…");
  RETURN_IF_FAILED(check_security(settings));
  ClientConf conf;
  const std::string timeout = std::to_string(settings.request_timeout.count());
  const std::pair<std::string_view, std::string> values[] = {
      {"bootstrap.servers", settings.brokers},
      {"client.id", settings.client_id},
      // Topics are made by an operator's command with the settings that they need, never by use.
      {"allow.auto.create.topics", "false"},
      {"socket.nagle.disable", "true"},
      {"socket.timeout.ms", timeout},
      {"socket.connection.setup.timeout.ms",
       std::to_string(std::max<std::int64_t>(1000, settings.request_timeout.count()))},
      // A leader that is gone costs as long as it takes to hear of the next one.
      {"reconnect.backoff.ms", "50"},
      {"reconnect.backoff.max.ms", "500"},
      {"topic.metadata.refresh.fast.interval.ms", "100"},
      {"topic.metadata.refresh.interval.ms", "10000"},
      // Closed connections are reported as errors; the library's own log adds nothing to that.
      {"log.connection.close", "false"},
      {"log_level", "2"},
      {"message.max.bytes", std::to_string(kMessageSizeMax)},
  };
  for (const auto& [name, value] : values) RETURN_IF_FAILED(conf.set(name, value));
  for (const auto& [name, value] : settings.security) RETURN_IF_FAILED(conf.set(name, value));
  rd_kafka_conf_set_socket_cb(conf.get(), open_socket);
  return conf;
}

Status ClientConf::for_producer(const KafkaSettings& settings) {
  const std::pair<std::string_view, std::string> values[] = {
      // Durable means: on every in-sync replica, once, in the order in which it was sent.
      {"acks", "all"},
      {"enable.idempotence", "true"},
      // A batch that is refused for good must not be followed by the next one: readers would find
      // a hole. The client stops instead, and the journal with it.
      {"enable.gapless.guarantee", "true"},
      // An entry is repeated until it is known what became of it.
      {"message.timeout.ms", "0"},
      {"message.send.max.retries", "2147483647"},
      {"request.timeout.ms", std::to_string(settings.request_timeout.count())},
      {"retry.backoff.ms", "50"},
      // The journal waits for more records; the client must not wait as well.
      {"linger.ms", "0"},
      {"max.in.flight.requests.per.connection", "5"},
      // The journals have bounds of their own, which come first.
      {"queue.buffering.max.messages", "1000000"},
      {"queue.buffering.max.kbytes", "2097151"},
      // Entries that wait share a request. It may exceed this by one entry, which still has to be
      // less than a topic accepts.
      {"batch.size", std::to_string(kBatchSize)},
  };
  for (const auto& [name, value] : values) RETURN_IF_FAILED(set(name, value));
  return {};
}

Status ClientConf::for_consumer(const KafkaSettings& settings) {
  const std::size_t ahead = std::max<std::size_t>(settings.read_ahead_max, kMessageSizeMax);
  const std::size_t fetch = std::min(ahead, kFetchMax);
  const std::pair<std::string_view, std::string> values[] = {
      {"enable.partition.eof", "true"},
      {"check.crcs", settings.verifies_batches ? "true" : "false"},
      // Entries that are no longer there must be noticed, not skipped.
      {"auto.offset.reset", "error"},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      // Nobody writes transactions here. One that somebody leaves open must not stop the reading.
      {"isolation.level", "read_uncommitted"},
      {"fetch.message.max.bytes", std::to_string(kMessageSizeMax)},
      {"fetch.max.bytes", std::to_string(fetch)},
      {"receive.message.max.bytes", std::to_string(fetch + kFetchOverhead)},
      {"fetch.error.backoff.ms", "50"},
      // One fetch at a time serves all partitions of a broker, and a reader that begins waits for
      // the one under way. An answer to a fetch costs a broker as much as a produce, so under load
      // there is not one for each entry.
      {"fetch.wait.max.ms", "50"},
      {"fetch.min.bytes", std::to_string(32 << 10)},
      // Each partition has a queue of its own, with room for the largest entry.
      {"queued.max.messages.kbytes", std::to_string(ahead >> 10)},
  };
  for (const auto& [name, value] : values) RETURN_IF_FAILED(set(name, value));
  return {};
}

Result<Client> ClientConf::make(rd_kafka_type_t type) && {
  std::array<char, kErrorTextMax> reason{};
  rd_kafka_t* client = rd_kafka_new(type, conf_.get(), reason.data(), reason.size());
  if (client == nullptr)
    return fail(std::string("Kafka's client does not start: ") + reason.data());
  (void)conf_.release();  // The client owns it now.
  return Client(client);
}

}  // namespace stanchion::kafka

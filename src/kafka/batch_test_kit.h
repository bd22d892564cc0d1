// Batches of Kafka, of version 2, byte by byte, for tests in which one of the bytes has changed.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stanchion::kafka {

// Where things stand in a batch.
inline constexpr std::size_t kSizeAt = 8, kEpochAt = 12, kMagicAt = 16, kCrcAt = 17,
                             kAttributesAt = 21;
inline constexpr std::size_t kLastOffsetAt = 23, kBatchHead = 61;

inline void put(std::string& bytes, std::uint64_t value, int size) {
  for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(value >> (8 * i));
}

inline void put_varint(std::string& bytes, std::int64_t value) {
  auto rest = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  for (; rest >= 0x80; rest >>= 7) bytes += static_cast<char>(rest | 0x80);
  bytes += static_cast<char>(rest);
}

inline std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

inline std::string record_of(std::size_t number, std::string_view entry) {
  std::string body(1, '\0');  // Attributes.
  put_varint(body, 0);        // Since the first timestamp.
  put_varint(body, static_cast<std::int64_t>(number));
  put_varint(body, -1);  // No key.
  put_varint(body, static_cast<std::int64_t>(entry.size()));
  body += entry;
  put_varint(body, 0);  // No headers.
  std::string record;
  put_varint(record, static_cast<std::int64_t>(body.size()));
  return record + body;
}

// As a producer makes it that does not count its entries. Behind them, so many offsets have none.
inline std::string batch_of(std::uint64_t offset, const std::vector<std::string>& entries,
                            std::size_t missing = 0) {
  const std::size_t count = entries.size() + missing;
  std::string covered;
  put(covered, 0, 2);  // Attributes.
  put(covered, count - 1, 4);
  put(covered, 1'700'000'000'000, 8);
  put(covered, 1'700'000'000'000, 8);
  put(covered, ~std::uint64_t{0}, 8);  // The producer, its epoch, and its count.
  put(covered, ~std::uint64_t{0}, 2);
  put(covered, ~std::uint64_t{0}, 4);
  put(covered, count, 4);
  for (std::size_t i = 0; i < entries.size(); ++i) covered += record_of(i, entries[i]);
  std::string batch;
  put(batch, offset, 8);
  put(batch, 4 + 1 + 4 + covered.size(), 4);
  put(batch, 3, 4);  // The leader's epoch.
  put(batch, 2, 1);
  put(batch, crc32c(covered), 4);
  return batch + covered;
}

// Has the broker at 127.0.0.1:port, which leads the partition, append the batch as it is.
inline void produce(std::uint16_t port, std::string_view topic, int partition,
                    std::string_view batch) {
  std::string request;
  put(request, 0, 2);  // Produce, version 7.
  put(request, 7, 2);
  put(request, 1, 4);
  put(request, 0xFFFF, 2);  // No name of the client, and no transaction.
  put(request, 0xFFFF, 2);
  put(request, 1, 2);
  put(request, 10'000, 4);
  put(request, 1, 4);
  put(request, topic.size(), 2);
  request += topic;
  put(request, 1, 4);
  put(request, static_cast<std::uint64_t>(partition), 4);
  put(request, batch.size(), 4);
  request += batch;
  std::string sized;
  put(sized, request.size(), 4);
  sized += request;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  ASSERT_EQ(::send(fd, sized.data(), sized.size(), 0), static_cast<ssize_t>(sized.size()));
  // Sizes, the topic, the partition, and then what became of it.
  const std::size_t error_at = 4 + 4 + 4 + 2 + topic.size() + 4 + 4;
  std::string answer(error_at + 2, '\0');
  ASSERT_EQ(::recv(fd, answer.data(), answer.size(), MSG_WAITALL),
            static_cast<ssize_t>(answer.size()));
  ::close(fd);
  ASSERT_EQ(answer.substr(error_at), std::string(2, '\0'));
}

}  // namespace stanchion::kafka

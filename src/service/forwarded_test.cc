#include "service/forwarded.h"

#include <gtest/gtest.h>

#include <vector>

namespace stanchion::service {
namespace {

using Headers = std::vector<net::HttpHeader>;

template <class Read>
std::string_view read(const Read& of, Headers headers) {
  net::HttpRequest request;
  request.headers = std::move(headers);
  return of(request);
}

std::string_view address(Headers headers) {
  return read(forwarded_address, std::move(headers));
}

TEST(Forwarded, OnlyWhatTheProxyAddedLastIsBelieved) {
  EXPECT_EQ(address({{"X-Forwarded-For", "9.9.9.9, 192.0.2.7"}}), "192.0.2.7");
  EXPECT_EQ(address({{"X-Forwarded-For", "9.9.9.9"}, {"x-forwarded-for", "192.0.2.7"}}),
            "192.0.2.7");
  EXPECT_EQ(address({{"X-Forwarded-For", "9.9.9.9"},
                     {"Host", "x"},
                     {"X-Forwarded-For", "8.8.8.8,\t192.0.2.7"}}),
            "192.0.2.7");
  EXPECT_EQ(read(forwarded_scheme, {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "http"}}),
            "http");
  EXPECT_EQ(read(forwarded_host, {{"X-Forwarded-Host", "evil.example"},
                                  {"X-Forwarded-Host", "queues.example.com:443"}}),
            "queues.example.com:443");
}

TEST(Forwarded, AnAddressIsOneOfIpv4OrIpv6) {
  EXPECT_EQ(address({{"X-Forwarded-For", "192.0.2.7:4711"}}), "192.0.2.7");
  EXPECT_EQ(address({{"X-Forwarded-For", "2001:db8::1"}}), "2001:db8::1");
  EXPECT_EQ(address({{"X-Forwarded-For", "[2001:db8::1]:4711"}}), "2001:db8::1");
  EXPECT_EQ(address({{"X-Forwarded-For", "[2001:db8::1]"}}), "2001:db8::1");
  for (const char* text : {"", "unknown", "unix", "192.0.2", "192.0.2.7.1", "host.example",
                           "::1::2", "192.0.2.7, ", "[::1", "1.2.3.4\n", "_hidden"})
    EXPECT_EQ(address({{"X-Forwarded-For", text}}), "") << text;
  EXPECT_EQ(address({}), "");
}

// The last line is the proxy's, also where it says nothing of use: the one before is the client's.
TEST(Forwarded, NoEarlierValueTakesThePlaceOfALastOneThatIsNotUnderstood) {
  EXPECT_EQ(address({{"X-Forwarded-For", "9.9.9.9"}, {"X-Forwarded-For", "unknown"}}), "");
  EXPECT_EQ(read(forwarded_scheme, {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", ""}}),
            "");
  EXPECT_EQ(
      read(forwarded_host, {{"X-Forwarded-Host", "a.example"}, {"X-Forwarded-Host", "b/path"}}),
      "");
}

}  // namespace
}  // namespace stanchion::service

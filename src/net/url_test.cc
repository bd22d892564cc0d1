#include "net/url.h"

#include <gtest/gtest.h>

namespace stanchion::net {
namespace {

std::string as_text(std::string_view url) {
  const auto parsed = parse_url(url);
  if (!parsed) return "refused";
  return (parsed->tls ? "tls " : "plain ") + parsed->host + " " + parsed->port + " " + parsed->path;
}

TEST(ParseUrl, TakesSchemeHostPortAndPath) {
  EXPECT_EQ(as_text("http://127.0.0.1:9324"), "plain 127.0.0.1 9324 /");
  EXPECT_EQ(as_text("https://example.com/a/b"), "tls example.com 443 /a/b");
  EXPECT_EQ(as_text("http://example.com"), "plain example.com 80 /");
  EXPECT_EQ(as_text("http://[::1]:9324/x"), "plain ::1 9324 /x");
  EXPECT_EQ(as_text("http://[::1]"), "plain ::1 80 /");
  EXPECT_EQ(as_text("unix:/run/s.sock"), "plain /run/s.sock  /");
}

TEST(ParseUrl, TheHostHeaderHasThePortThatIsNotTheUsualOne) {
  EXPECT_EQ(parse_url("https://sqs.eu-west-1.amazonaws.com/")->authority(),
            "sqs.eu-west-1.amazonaws.com");
  EXPECT_EQ(parse_url("https://example.com:443")->authority(), "example.com");
  EXPECT_EQ(parse_url("https://example.com:80")->authority(), "example.com:80");
  EXPECT_EQ(parse_url("http://[::1]:80/x")->authority(), "[::1]");
  EXPECT_EQ(parse_url("http://[::1]:9324/x")->authority(), "[::1]:9324");
}

TEST(ParseUrl, RefusesTheRest) {
  for (const char* url : {"", "127.0.0.1:9324", "ftp://x", "http://", "http://:80", "http://x:y",
                          "http://x:70000", "http://x/\r\nHost: y", "unix:"})
    EXPECT_EQ(as_text(url), "refused") << url;
}

}  // namespace
}  // namespace stanchion::net

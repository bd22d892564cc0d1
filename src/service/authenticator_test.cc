#include "service/authenticator.h"

#include <gtest/gtest.h>

namespace stanchion::service {
namespace {

TEST(Regions, AHostNamesItsRegionInTheNewFormAndInTheOld) {
  EXPECT_EQ(region_of_host("sqs.eu-west-1.amazonaws.com"), "eu-west-1");
  EXPECT_EQ(region_of_host("sqs.eu-west-1.localhost:9324"), "eu-west-1");
  EXPECT_EQ(region_of_host("eu-west-1.queue.amazonaws.com"), "eu-west-1");
  EXPECT_EQ(region_of_host("eu-west-1.queue.localhost:9324"), "eu-west-1");
  for (const std::string_view none :
       {"", "localhost", "127.0.0.1:9324", "sqs", "sqs.", "sqs.eu-west-1", "sqs.example.com",
        "queue.amazonaws.com", "a.queue.example.com", "eu-west-1.queue", "sqs.EU-WEST-1.a.com",
        "sqs.eu/west-1.a.com"})
    EXPECT_EQ(region_of_host(none), "") << none;
}

std::string claimed_in_header(std::string_view authorization) {
  const wire::HeaderView headers[] = {{"Authorization", authorization}};
  return claimed_region({"POST", "/", headers, ""});
}

std::string claimed_in_query(std::string_view target) {
  return claimed_region({"GET", target, {}, ""});
}

TEST(Regions, AnUnverifiedSignatureStillTellsWhichRegionIsMeant) {
  EXPECT_EQ(claimed_in_header("AWS4-HMAC-SHA256 Credential=K/20260801/eu-west-1/sqs/aws4_request, "
                              "SignedHeaders=host, Signature=00"),
            "eu-west-1");
  EXPECT_EQ(claimed_in_query("/?Action=ListQueues&X-Amz-Credential=K%2F20260801%2Feu-west-1%2Fsqs"
                             "%2Faws4_request&X-Amz-Date=20260801T000000Z"),
            "eu-west-1");
  EXPECT_EQ(claimed_in_query("/?X-Amz-Credential=K/20260801/eu-west-1/sqs/aws4_request"),
            "eu-west-1");
  for (const std::string_view nonsense : {"", "Bearer x", "Credential=", "Credential=K/1",
                                          "Credential=K/1/ /sqs", "Credential=K/1/a%20b/sqs"})
    EXPECT_EQ(claimed_in_header(nonsense), "") << nonsense;
  for (const std::string_view nonsense :
       {"/", "/?", "/?X-Amz-Credential", "/?X-Amz-Credential=%", "/?X-Amz-Credential=K%2F1%2F%FF"})
    EXPECT_EQ(claimed_in_query(nonsense), "") << nonsense;
}

TEST(Anonymous, WhatThePageGuardRefusesIsRefused) {
  os::SystemClock clock;
  Authenticator authenticator({.pages = PageGuard({.hosts = {"queues.example.com"}})}, 1, clock);
  const net::HttpRequest http;
  const auto may = [&](std::string_view host) {
    const wire::HeaderView headers[] = {{"Host", host}};
    const auto caller = authenticator.identify({"POST", "/", headers, ""}, http, 0);
    if (!caller) {
      EXPECT_EQ(caller.error().code, ErrorCode::kAccessDenied);
    }
    return caller.has_value();
  };
  EXPECT_TRUE(may("localhost:9324"));
  EXPECT_TRUE(may("queues.example.com"));
  EXPECT_FALSE(may("evil.example:9324"));
}

}  // namespace
}  // namespace stanchion::service

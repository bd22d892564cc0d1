// Who is heard on the port of a node, and what is copied there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "link/link_test_kit.h"
#include "link/link_tls.h"
#include "net/tls_test_kit.h"
#include "os/temporary_directory.h"

namespace stanchion::link {
namespace {

constexpr std::string_view kSecret = "a secret of sixteen bytes or more";

class LinkSecurityTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  LinkOptions with_secret(const std::string& name, std::string_view secret) {
    return {.security = {.secret_file = file(name, secret)}};
  }

  // A node's certificate, which is its own authority.
  LinkOptions with_certificate(const std::string& name, const std::string& authority) {
    const net::TlsFiles files{directory_.path() + "/" + name + ".pem",
                              directory_.path() + "/" + name + ".key"};
    if (!std::filesystem::exists(files.certificate_chain))
      net::test::write_certificate(files, name);
    return {.security = {.certificate_file = files.certificate_chain,
                         .key_file = files.private_key,
                         .ca_file = directory_.path() + "/" + authority + ".pem"}};
  }

  LinkOptions with_secrets(const std::string& offered, const std::string& accepted) {
    LinkOptions options = with_secret("offered " + offered, offered);
    options.security.accepted_secret_file = file("accepted " + accepted, accepted);
    return options;
  }

  // Who shows the certificate of one and trusts several.
  LinkOptions with_authorities(const std::string& name, const std::vector<std::string>& trusted) {
    std::string all, title = name + " trusts";
    for (const std::string& one : trusted) {
      std::ifstream in(with_certificate(one, one).security.certificate_file, std::ios::binary);
      all += std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
      title += " " + one;
    }
    LinkOptions options = with_certificate(name, name);
    options.security.ca_file = file(title, all);
    return options;
  }

  // Every node goes from each of these to the next, one after the other, and always talks to the
  // others, whoever dials.
  void expect_to_change(const std::vector<LinkOptions>& steps) {
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      SCOPED_TRACE(fmt::format("from step {}", i));
      expect_to_talk(steps[i], steps[i + 1]);
      expect_to_talk(steps[i + 1], steps[i]);
      expect_to_talk(steps[i + 1], steps[i + 1]);
    }
  }

  void expect_to_talk(const LinkOptions& of_a, const LinkOptions& of_b) {
    TestNode a("a", of_a), b("b", of_b);
    a.start(), b.start();
    a.meet("b", b);
    ASSERT_TRUE(a.is_connected("b") && b.is_connected("a"));
    EXPECT_TRUE(a.transport().send("b", fleet::Cancel{1, ShardIndex(0)}));
    EXPECT_TRUE(b.transport().send("a", fleet::Cancel{2, ShardIndex(0)}));
    EXPECT_TRUE(b.has_taken("a", 1) && a.has_taken("b", 1));
    EXPECT_EQ(a.logged() + b.logged(), 0U) << "nobody was refused before";
  }

  // One of the two says why, and neither has ever heard the other.
  void expect_silence(const LinkOptions& of_a, const LinkOptions& of_b) {
    TestNode a("a", of_a), b("b", of_b);
    a.start(), b.start();
    a.meet("b", b);
    EXPECT_TRUE(a.has_logged("the node \"b\""));
    EXPECT_EQ(a.made("b") + b.made("a"), 0);
    EXPECT_FALSE(a.transport().send("b", fleet::Cancel{1, ShardIndex(0)}));
  }

  std::string refusal(LinkOptions options) {
    TestNode node("a", std::move(options));
    const Status listening = node.listen();
    return listening ? "none" : listening.error().message;
  }

  os::TemporaryDirectory directory_;
};

TEST_F(LinkSecurityTest, NodesThatShareASecretTalk) {
  const LinkOptions same = with_secret("secret", kSecret);
  expect_to_talk(same, same);
  // A newline at the end is the editor's.
  expect_to_talk(same, with_secret("edited", std::string(kSecret) + "\n"));
}

TEST_F(LinkSecurityTest, WhoHasAnotherSecretIsNotHeard) {
  expect_silence(with_secret("one", kSecret), with_secret("other", "another secret, just as long"));
}

TEST_F(LinkSecurityTest, ASecretIsChangedNodeByNode) {
  const std::string before(kSecret), after = "another secret, just as long";
  expect_to_change({with_secret("before", before), with_secrets(before, after),
                    with_secrets(after, before), with_secret("after", after)});
}

TEST_F(LinkSecurityTest, ASecretIsAcceptedAsLongAsItIsSetAndNoLonger) {
  const std::string before(kSecret), after = "another secret, just as long";
  // A step that is left out is noticed: who offers a secret must know that it is accepted.
  expect_silence(with_secret("before", before), with_secret("after", after));
  expect_silence(with_secret("before", before), with_secrets(after, "a third one, just as long"));
  expect_silence(with_secrets(after, before), with_secret("before", before));
}

// LT1.
TEST(LinkSecrets, EarlierReleasesKnowTheNameUnderWhichTheOnlySecretIsOffered) {
  LinkTls::Secrets secrets{.old_identity = "secret", .all = {{"secret 1", "one"}}};
  EXPECT_EQ(secrets.offered(), "secret");
  EXPECT_EQ(secrets.find("secret")->key, "one");
  secrets.all.push_back({"secret 2", "two"});
  EXPECT_EQ(secrets.offered(), "secret 1");
  EXPECT_EQ(secrets.find("secret")->key, "one");
  EXPECT_EQ(secrets.find("secret 2")->key, "two");
  EXPECT_EQ(secrets.find("secret 3"), nullptr);
}

TEST_F(LinkSecurityTest, WhatAHandshakeProbablyFailedForIsSaid) {
  TestNode a("a", with_secret("one", kSecret));
  TestNode b("b", with_secret("other", "another secret, just as long"));
  a.start(), b.start();
  a.meet("b", b);
  EXPECT_TRUE(a.has_logged("probably the two have different secrets"));
  EXPECT_TRUE(b.has_logged("probably the two have different secrets"));
  const fleet::Links links = *a.transport().links();
  EXPECT_TRUE(links.with.empty());
  ASSERT_TRUE(links.without.contains("b"));
  EXPECT_TRUE(links.without.at("b").contains("probably the two have different secrets"));
}

TEST_F(LinkSecurityTest, WhoHasNoSecretIsNotHeard) {
  const LinkOptions secret = with_secret("one", kSecret);
  expect_silence({}, secret);
  expect_silence(secret, {});
}

TEST_F(LinkSecurityTest, NodesWithCertificatesOfOneAuthorityTalk) {
  const LinkOptions same = with_certificate("fleet", "fleet");
  expect_to_talk(same, same);
}

TEST_F(LinkSecurityTest, ACertificateOfAnotherAuthorityIsNotHeard) {
  const LinkOptions fleet = with_certificate("fleet", "fleet");
  expect_silence(with_certificate("stranger", "stranger"), fleet);
  // It trusts the fleet, but the fleet does not trust it; and the other way round.
  expect_silence(with_certificate("stranger", "fleet"), fleet);
  expect_silence(fleet, with_certificate("stranger", "fleet"));
}

TEST_F(LinkSecurityTest, AnAuthorityIsChangedNodeByNode) {
  expect_to_change({with_authorities("old", {"old"}), with_authorities("old", {"old", "new"}),
                    with_authorities("new", {"new", "old"}), with_authorities("new", {"new"})});
  expect_silence(with_authorities("old", {"old"}), with_authorities("new", {"new", "old"}));
}

TEST_F(LinkSecurityTest, ASecretDoesNotLetACertificateIn) {
  expect_silence(with_certificate("fleet", "fleet"), with_secret("one", kSecret));
}

TEST_F(LinkSecurityTest, PlainWordsOnAPortWithTlsAreNotHeard) {
  TestNode b("b", with_secret("one", kSecret));
  b.start();
  RawClient client(b.port());
  ASSERT_TRUE(client.write(encode(hello_of_a())));
  EXPECT_TRUE(client.is_closed_by_peer());
  EXPECT_EQ(b.made("a"), 0);
}

TEST_F(LinkSecurityTest, WithoutEitherANodeListensOnThisMachineOnly) {
  EXPECT_NE(refusal({.host = "0.0.0.0"}), "none");
  EXPECT_EQ(refusal({.host = "127.0.0.1"}), "none");
}

TEST_F(LinkSecurityTest, ANameThatOtherMachinesCannotReachIsSaid) {
  LinkOptions options = with_secret("secret", kSecret);
  options.host = "localhost";
  TestNode named("a", options);
  named.start();
  EXPECT_TRUE(named.has_logged("on this machine localhost is a loopback address"));
  // Who writes the address means it.
  options.host = "127.0.0.1";
  TestNode meant("a", options);
  meant.start();
  EXPECT_EQ(meant.logged(), 0U);
}

TEST_F(LinkSecurityTest, WhatIsWrongWithTheFilesIsSaid) {
  EXPECT_TRUE(refusal(with_secret("short", "short")).contains("has 5 bytes"));
  EXPECT_TRUE(refusal({.security = {.secret_file = directory_.path() + "/none"}}).contains("none"));
  LinkOptions second = with_secrets(std::string(kSecret), "short");
  EXPECT_TRUE(refusal(second).contains("has 5 bytes"));
  second.security.secret_file.clear();
  EXPECT_TRUE(refusal(second).contains("none is set"));
  LinkOptions part = with_certificate("fleet", "fleet");
  part.security.ca_file.clear();
  EXPECT_TRUE(refusal(part).contains("one is missing"));
  LinkOptions both = with_certificate("fleet", "fleet");
  both.security.secret_file = file("secret", kSecret);
  EXPECT_TRUE(refusal(both).contains("choose one"));
}

// Copies.

class LinkCopyTest : public LinkSecurityTest {
 protected:
  std::string make_source() {
    const std::string source = directory_.path() + "/source";
    std::filesystem::create_directory(source);
    std::ofstream(source + "/empty", std::ios::binary);
    std::ofstream(source + "/large", std::ios::binary) << std::string(3'000'000, 'x');
    std::ofstream(source + "/small", std::ios::binary) << "abc";
    return source;
  }

  static std::map<std::string, std::string> files_in(const std::string& path) {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      std::ifstream in(entry.path(), std::ios::binary);
      found[entry.path().filename().string()] =
          std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return found;
  }

  std::string target() const { return directory_.path() + "/target"; }
  bool nothing_is_left() const { return !std::filesystem::exists(target()); }
};

TEST_F(LinkCopyTest, AStoreArrivesAsItIs) {
  const std::string source = make_source();
  for (const LinkOptions& options : {LinkOptions{.shards = 8}, [&] {
                                       LinkOptions secret = with_secret("secret", kSecret);
                                       secret.shards = 8;
                                       return secret;
                                     }()}) {
    TestNode a("a", options), b("b", options);
    a.start();
    b.start([&](ShardIndex shard, const SendDirectory& send) {
      EXPECT_EQ(shard, ShardIndex(7));
      return send(source);
    });
    const Status copied = a.transport().copy_store(b.address(), ShardIndex(7), target());
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(files_in(target()), files_in(source));
    std::filesystem::remove_all(target());
  }
}

TEST_F(LinkCopyTest, WhyThereIsNoCopyIsSaid) {
  TestNode a("a"), b("b");
  a.start();
  b.start([](ShardIndex, const SendDirectory&) { return fail("the store is elsewhere"); });
  const Status copied = a.transport().copy_store(b.address(), ShardIndex(0), target());
  ASSERT_FALSE(copied);
  EXPECT_TRUE(copied.error().message.contains("the store is elsewhere"));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LinkCopyTest, ACopyThatIsCutOffLeavesNothing) {
  // A directory below cannot be sent: so the copy ends in the middle.
  const std::string source = make_source();
  std::filesystem::create_directory(source + "/zz-directory");
  TestNode a("a"), b("b");
  a.start();
  b.start([&](ShardIndex, const SendDirectory& send) { return send(source); });
  EXPECT_FALSE(a.transport().copy_store(b.address(), ShardIndex(0), target()));
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LinkCopyTest, NobodyElseGetsACopy) {
  const std::string source = make_source();
  TestNode stranger("a", with_secret("other", "another secret, just as long"));
  TestNode b("b", with_secret("one", kSecret));
  stranger.start();
  bool asked = false;
  b.start([&](ShardIndex, const SendDirectory& send) {
    asked = true;
    return send(source);
  });
  EXPECT_FALSE(stranger.transport().copy_store(b.address(), ShardIndex(0), target()));
  EXPECT_FALSE(asked);
  EXPECT_TRUE(nothing_is_left());
}

}  // namespace
}  // namespace stanchion::link

#include "settings/secret_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/temporary_directory.h"

namespace stanchion::settings {
namespace {

namespace fs = std::filesystem;

class SecretFilesTest : public testing::Test {
 protected:
  std::string file(const std::string& name, unsigned mode) {
    const fs::path path = fs::path(directory_.path()) / name;
    std::ofstream(path) << "secret";
    fs::permissions(path, static_cast<fs::perms>(mode));
    return path;
  }

  // Everybody can enter the directory of the test.
  void SetUp() override { fs::permissions(directory_.path(), static_cast<fs::perms>(0755)); }

  Settings with_key(const std::string& secret_file) {
    Settings settings;
    settings.accounts.push_back({.id = "111111111111", .keys = {{}}});
    settings.accounts[0].keys[0].id = "AKIA";
    settings.accounts[0].keys[0].secret = "secret";
    settings.accounts[0].keys[0].secret_file = secret_file;
    return settings;
  }

  os::TemporaryDirectory directory_;
};

TEST_F(SecretFilesTest, ASettingsFileWithSecretsIsNamedIfEverybodyCanReadIt) {
  Settings settings = with_key("");
  settings.file = file("open", 0644);
  ASSERT_EQ(exposed_secrets(settings).size(), 1u);
  EXPECT_EQ(exposed_secrets(settings)[0], "everybody on this machine can read " + settings.file +
                                              ", which holds secrets: chmod o-rw " + settings.file);
  settings.file = file("closed", 0640);
  EXPECT_TRUE(exposed_secrets(settings).empty());
}

TEST_F(SecretFilesTest, ASettingsFileWithoutSecretsMayBeRead) {
  Settings settings = with_key(file("secret", 0600));
  settings.file = file("open", 0644);
  EXPECT_TRUE(exposed_secrets(settings).empty());
  settings.accounts[0].keys[0].session_token = "token";
  EXPECT_EQ(exposed_secrets(settings).size(), 1u);
}

TEST_F(SecretFilesTest, TheTokenForMetricsIsASecretOfTheFile) {
  Settings settings;
  settings.file = file("open", 0644);
  EXPECT_TRUE(exposed_secrets(settings).empty());
  settings.metrics.token = "0123456789abcdef";
  EXPECT_EQ(exposed_secrets(settings).size(), 1u);
}

TEST_F(SecretFilesTest, FilesOfSecretsAndTheKeyOfTlsAreLookedAtToo) {
  Settings settings = with_key(file("secret", 0604));
  settings.tls.key = file("key.pem", 0602);
  const auto warnings = exposed_secrets(settings);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("the secret of key AKIA"), std::string::npos);
  EXPECT_NE(warnings[1].find("can change"), std::string::npos);
}

TEST_F(SecretFilesTest, NobodyReadsBelowADirectoryThatIsClosed) {
  const Settings settings = with_key(file("secret", 0644));
  EXPECT_EQ(exposed_secrets(settings).size(), 1u);
  fs::permissions(directory_.path(), static_cast<fs::perms>(0750));
  EXPECT_TRUE(exposed_secrets(settings).empty());
}

TEST_F(SecretFilesTest, AFileThatIsNotThereIsSomebodyElsesToMissAndALinkIsFollowed) {
  EXPECT_TRUE(exposed_secrets(with_key((fs::path(directory_.path()) / "none").string())).empty());
  const fs::path link = fs::path(directory_.path()) / "link";
  fs::create_symlink(file("secret", 0644), link);
  EXPECT_EQ(exposed_secrets(with_key(link)).size(), 1u);
}

}  // namespace
}  // namespace stanchion::settings

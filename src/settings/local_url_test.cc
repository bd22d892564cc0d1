#include "settings/local_url.h"

#include <gtest/gtest.h>

namespace stanchion::settings {
namespace {

TEST(LocalUrl, IsWhereThisMachineFindsTheServer) {
  Settings settings;
  EXPECT_EQ(local_url(settings), "http://127.0.0.1:9324");
  settings.server.listen = {"0.0.0.0", 80};
  EXPECT_EQ(local_url(settings), "http://127.0.0.1");
  settings.server.listen = {"::", 80};
  settings.tls.certificate = "c";
  EXPECT_EQ(local_url(settings), "https://[::1]:80");
  settings.server.unix_socket = "/run/s.sock";
  EXPECT_EQ(local_url(settings), "unix:/run/s.sock");
}

}  // namespace
}  // namespace stanchion::settings

// The implementation of a Client; the batcher uses it too.
#pragma once

#include "client/client.h"
#include "client/core.h"

namespace stanchion::client {

struct Client::Impl {
  Impl(Options options, Settings settings) : core(std::move(options), std::move(settings)) {}

  Core core;
};

}  // namespace stanchion::client

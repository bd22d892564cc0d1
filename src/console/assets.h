// The files of the console, compressed by gzip; cmake/console.cmake embeds them.
#pragma once

#include <span>
#include <string_view>

namespace stanchion::console {

struct ConsoleAsset {
  std::string_view path;  // "/console/app.js".
  std::string_view type;
  std::string_view gzip;
};

std::span<const ConsoleAsset> console_assets();

}  // namespace stanchion::console

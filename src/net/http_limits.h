// What clients of the HTTP server may do; each limit says what happens beyond it. These are also
// the defaults of the settings.
#pragma once

#include <chrono>
#include <cstddef>

namespace stanchion::net {

// A body of 1 MiB of text takes 3 MiB if a form percent-encodes it and 6 MiB if JSON escapes every
// character by its number; the limit leaves half a MiB for the rest of the body.
struct HttpLimits {
  std::size_t header_bytes_max = 16 * 1024;      // Beyond: 431.
  std::size_t header_count_max = 100;            // Beyond: 431.
  std::size_t body_bytes_max = 13 * 512 * 1024;  // Beyond: 413.
  std::size_t held_bytes_max = 256 << 20;        // For all connections; see Listener::make_room.
  std::size_t connections_max = 50'000;          // Beyond: 503 and close.
  // Beyond connections_max: instead of the new one, the longest silent one is closed. 503 only if none
  // is silent.
  bool silent_give_way = false;
  std::size_t per_address_max = 0;                   // Connections from one address; 0: any number.
  bool per_address_here_too = true;                  // Also for addresses of this machine.
  std::size_t pipelined_max = 16;                    // Beyond: not read until answers are out.
  std::chrono::milliseconds header_timeout{10'000};  // First byte to end of head; then 408.
  std::chrono::milliseconds body_timeout{60'000};    // End of head to end of body; then 408.
  std::chrono::milliseconds idle_timeout{120'000};   // Between requests; then close.
  std::chrono::milliseconds write_timeout{60'000};   // While the client does not read; then close.
  std::chrono::milliseconds linger_timeout{2'000};   // For reading an error before it is cut off.
};

}  // namespace stanchion::net

// Connections whose other end is gone without a word: a network that was cut resets nothing.
#pragma once

#include <chrono>

namespace stanchion::os {

// From now on the TCP connection breaks by itself if the other machine has confirmed nothing for
// `time`: neither what was sent, nor that it is still there. A process that is slow does not count,
// because its machine confirms for it. Other sockets are left as they are.
void limit_silence(int fd, std::chrono::milliseconds time);

}  // namespace stanchion::os

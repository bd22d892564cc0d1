// `stanchion advise`: what a running server would change about its queues and their clients.
#pragma once

namespace stanchion::cli {

class Program;
void add_advise(Program& program);

}  // namespace stanchion::cli

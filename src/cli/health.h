// `stanchion health`: whether a server is ready, for health checks of containers and load
// balancers.
#pragma once

namespace stanchion::cli {

class Program;
void add_health(Program& program);

}  // namespace stanchion::cli

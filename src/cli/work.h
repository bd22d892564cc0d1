// `stanchion work`: handles the messages of queues by a command, a process or an
// endpoint.
#pragma once

namespace stanchion::cli {

class Program;
void add_work(Program& program);

}  // namespace stanchion::cli

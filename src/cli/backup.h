// `stanchion backup`: a copy of a data directory that can be started.
#pragma once

namespace stanchion::cli {

class Program;
void add_backup(Program& program);

}  // namespace stanchion::cli

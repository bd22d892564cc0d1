// `stanchion help` and `stanchion version`.
#pragma once

namespace stanchion::cli {

class Program;
void add_help(Program& program);

}  // namespace stanchion::cli

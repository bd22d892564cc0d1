// `stanchion check-config`: what is wrong with a stanchion.toml.
#pragma once

namespace stanchion::cli {

class Program;
void add_check_config(Program& program);

}  // namespace stanchion::cli

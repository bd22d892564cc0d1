// `stanchion import`: an ElasticMQ configuration as stanchion.toml.
#pragma once

namespace stanchion::cli {

class Program;
void add_import(Program& program);

}  // namespace stanchion::cli

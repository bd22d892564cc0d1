// `stanchion fleet`: found a fleet on Kafka, look at it, and tell it what is wanted.
#pragma once

namespace stanchion::cli {

class Program;
void add_fleet(Program& program);

}  // namespace stanchion::cli

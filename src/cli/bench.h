// `stanchion bench`: a load generator for any SQS endpoint, which checks what it receives.
#pragma once

namespace stanchion::cli {

class Program;
void add_bench(Program& program);

}  // namespace stanchion::cli

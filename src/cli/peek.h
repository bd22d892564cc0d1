// `stanchion peek`: looks at the messages of a queue without receiving them.
#pragma once

namespace stanchion::cli {

class Program;

void add_peek(Program& program);

}  // namespace stanchion::cli

// `stanchion serve`: the command and its flags, one for every value of the settings.
#pragma once

namespace stanchion::cli {

class Program;
void add_serve(Program& program);

}  // namespace stanchion::cli

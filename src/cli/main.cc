// stanchion: one program, several commands.
#include <build_commit.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <rocksdb/version.h>

#include <cstdlib>

#ifdef STANCHION_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#include "base/check.h"
#include "cli/advise.h"
#include "cli/backup.h"
#include "cli/bench.h"
#include "cli/check_config.h"
#include "cli/completion.h"
#include "cli/export.h"
#include "cli/fleet.h"
#include "cli/health.h"
#include "cli/help.h"
#include "cli/import.h"
#include "cli/inspect.h"
#include "cli/peek.h"
#include "cli/program.h"
#include "cli/repair.h"
#include "cli/serve.h"
#include "cli/work.h"
#include "settings/machine_memory.h"

// Read by jemalloc, if it is linked: unused memory is returned to the system within half a second, even
// while nothing happens; see also kScarceMemory. Ten seconds, as unless set, is long enough to be killed
// in a small container.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf =
    "background_thread:true,max_background_threads:1,dirty_decay_ms:500,muzzy_decay_ms:0";
}

namespace {

using namespace stanchion;
using namespace stanchion::cli;

BuildInfo build_info() {
  std::string commit = STANCHION_COMMIT;
  if (commit.empty()) commit = "unknown";
#ifdef STANCHION_JEMALLOC
  const char* allocator = "jemalloc";
#else
  const char* allocator = "of the C library";
#endif
  return {
      STANCHION_VERSION,
      fmt::format("commit     {}\ncompiler   {}, {}\nRocksDB    {}.{}.{}\nOpenSSL    {}\n"
                  "allocator  {}\n",
                  commit, STANCHION_COMPILER, STANCHION_BUILD_TYPE, ROCKSDB_MAJOR, ROCKSDB_MINOR,
                  ROCKSDB_PATCH, OpenSSL_version(OPENSSL_VERSION_STRING), allocator)};
}

// With less memory than this, unused memory is returned at once. Large messages cost a third more time
// then, and the kernel kills nobody for what is unused.
constexpr std::uint64_t kScarceMemory = std::uint64_t{512} << 20;

void give_back_at_once_where_memory_is_scarce() {
#ifdef STANCHION_JEMALLOC
  const std::uint64_t memory = settings::memory_of_this_process();
  const bool is_scarce = memory != 0 && memory < kScarceMemory;
  if (!is_scarce || std::getenv("MALLOC_CONF") != nullptr) return;
  ssize_t at_once = 0;
  const auto set = [&](const std::string& name) {
    return mallctl(name.c_str(), nullptr, nullptr, &at_once, sizeof at_once) == 0;
  };
  unsigned arenas = 0;
  std::size_t size = sizeof arenas;
  static_cast<void>(mallctl("arenas.narenas", &arenas, &size, nullptr, 0));
  // The first arena exists already; of the others some may, and those to come have the default.
  CHECK(set("arenas.dirty_decay_ms") && set("arena.0.dirty_decay_ms"), "jemalloc can be told");
  for (unsigned i = 1; i < arenas; ++i)
    static_cast<void>(set(fmt::format("arena.{}.dirty_decay_ms", i)));
#endif
}

}  // namespace

int main(int argc, char** argv) {
  give_back_at_once_where_memory_is_scarce();
  Program program(build_info());
  add_serve(program);
  add_check_config(program);
  add_health(program);
  add_backup(program);
  add_inspect(program);
  add_repair(program);
  add_export(program);
  add_import(program);
  add_peek(program);
  add_advise(program);
  add_work(program);
  add_bench(program);
  add_fleet(program);
  add_completion(program);
  add_help(program);
  return program.run(argc, argv);
}

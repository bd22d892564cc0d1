#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "load/run.h"
#include "os/real_directory.h"

namespace stanchion::load {
namespace {

constexpr std::uint64_t kFileSize = 64 << 20;

// Appends and syncs, starting over once the file is full, like a journal whose segments are reused.
Status append_and_sync(os::File& file, const Options& options, const std::atomic<bool>& interrupted,
                       Outcome& outcome) {
  using std::chrono::steady_clock;
  const std::string bytes(options.body_size, 'x');
  // The space is written once beforehand, so that neither allocation nor its bookkeeping is
  // measured.
  const std::string zeros(1 << 20, '\0');
  for (std::uint64_t at = 0; at < kFileSize; at += zeros.size())
    RETURN_IF_FAILED(file.write_at(at, zeros));
  RETURN_IF_FAILED(file.sync_data());
  const Time began = steady_clock::now();
  const auto length = std::chrono::duration<double>(options.seconds);
  std::uint64_t at = 0;
  for (Time now = began; now - began < length && !interrupted;) {
    if (at + bytes.size() > kFileSize) at = 0;
    RETURN_IF_FAILED(file.write_at(at, bytes));
    RETURN_IF_FAILED(file.sync_data());
    at += bytes.size();
    const Time done = steady_clock::now();
    outcome.stats.add(Op::kSync, done - now, 1);
    now = done;
  }
  outcome.seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
  outcome.interrupted = interrupted;
  return {};
}

}  // namespace

Result<Outcome> run_fdatasync(const Options& options, const std::atomic<bool>& interrupted) {
  auto directory = os::open_real_directory(options.file);
  if (!directory) return std::unexpected(directory.error());
  const std::string name = fmt::format("bench-fdatasync-{}", ::getpid());
  auto file = (*directory)->open_file(name, os::OpenMode::kCreateNew);
  if (!file) return std::unexpected(file.error());
  Outcome outcome;
  const Status done = append_and_sync(**file, options, interrupted, outcome);
  file->reset();
  const Status removed = (*directory)->remove(name);
  if (!done) return std::unexpected(done.error());
  if (!removed) return std::unexpected(removed.error());
  return outcome;
}

}  // namespace stanchion::load

// A small coverage-guided fuzzing driver for programs with the libFuzzer entry point.
//
// g++ has no libFuzzer, but its -fsanitize-coverage=trace-pc calls us at every basic block. The
// driver hashes pairs of blocks into a map, keeps every input that reaches a new cell, and mutates
// the kept inputs. The same seed and corpus give the same run.
//
//   <target> [-runs=N] [-seconds=N] [-seed=N] [-max_len=N] [corpus directory | input file]...
//
// Directories are read at the start, and inputs that found something new are written to the first
// one. Files are run once each, without mutation: that is how a saved crash is repeated. An input
// that ends the process is saved as crash-<hash>; one that exceeds the time limit as slow-<hash>.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/digest.h"
#include "base/text.h"
#include "fuzz/fuzz.h"

namespace {

constexpr std::size_t kMapSize = 1 << 16;
// A plain array: std::array's operators may be linked from an object that is compiled for coverage.
std::uint8_t coverage_map[kMapSize];
std::uintptr_t previous_block = 0;

}  // namespace

// Called by every basic block that was compiled for coverage. This file must not be, or it would
// call itself.
extern "C" void __sanitizer_cov_trace_pc() {
  // Relative to this function, because the program is loaded at a different address each time.
  const auto block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                     reinterpret_cast<std::uintptr_t>(&__sanitizer_cov_trace_pc);
  const std::uintptr_t spread = (block * 0x9E3779B97F4A7C15ULL) >> 40;
  std::uint8_t& cell = coverage_map[(spread ^ previous_block) % kMapSize];
  if (cell != 255) ++cell;
  previous_block = spread >> 1;
}

namespace stanchion::fuzz {
namespace {

namespace fs = std::filesystem;
using Steady = std::chrono::steady_clock;

constexpr int kSecondsPerInput = 10;
constexpr std::size_t kSharedSizeMin = 1 << 20;

struct Options {
  std::uint64_t runs = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t seconds = 60;
  std::uint64_t seed = 1;
  std::size_t max_len = 64 << 10;
  std::vector<std::string> paths;
};

// The current input, in memory shared with the parent process, which saves the input if the child
// dies, for whatever reason.
class SharedInput {
 public:
  explicit SharedInput(std::size_t capacity) : capacity_(capacity) {
    void* memory = ::mmap(nullptr, sizeof(std::size_t) + capacity, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    size_ = static_cast<std::size_t*>(memory);
    bytes_ = reinterpret_cast<char*>(size_ + 1);
  }

  void set(std::string_view input) { *size_ = input.copy(bytes_, capacity_); }

  void save_as(const char* prefix) const {
    const std::string_view input(bytes_, *size_);
    const std::string name = prefix + to_hex(as_text(sha256(input))).substr(0, 16);
    std::ofstream(name, std::ios::binary) << input;
    std::fprintf(stderr, "input of %zu bytes saved as %s\n", input.size(), name.c_str());
  }

 private:
  std::size_t capacity_;
  std::size_t* size_;
  char* bytes_;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void run_one(const std::string& input, SharedInput& shared) {
  shared.set(input);
  // A copy of its exact size, so that the address sanitizer sees a read past the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  ::alarm(kSecondsPerInput);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ::alarm(0);
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::size_t max_len) : random_(seed), max_len_(max_len) {}

  std::size_t below(std::size_t bound) {
    return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound);
  }

  std::string mutate(std::string input, const std::vector<std::string>& corpus) {
    // Mostly one or two changes, sometimes many.
    const std::size_t changes = std::size_t{1} << below(below(4) == 0 ? 6 : 2);
    for (std::size_t i = 0; i < changes; ++i) change(input, corpus);
    if (input.size() > max_len_) input.resize(max_len_);
    return input;
  }

 private:
  void change(std::string& input, const std::vector<std::string>& corpus) {
    switch (below(input.empty() ? 2 : 9)) {
      case 0:
        insert_random(input);
        break;
      case 1:
        splice(input, corpus[below(corpus.size())]);
        break;
      case 2:
        flip_bit(input);
        break;
      case 3:
        input[below(input.size())] = static_cast<char>(random_());
        break;
      case 4:
        interesting_number(input);
        break;
      case 5:
        erase(input);
        break;
      case 6:
        duplicate(input);
        break;
      case 7:
        add_small(input);
        break;
      case 8:
        input.resize(below(input.size()) + 1);
        break;
    }
  }

  void flip_bit(std::string& input) {
    char& byte = input[below(input.size())];
    byte = static_cast<char>(byte ^ (1 << below(8)));
  }

  void insert_random(std::string& input) {
    std::string bytes(1 + below(8), static_cast<char>(random_()));
    if (below(2) == 0)
      for (char& byte : bytes) byte = static_cast<char>(random_());
    input.insert(below(input.size() + 1), bytes);
  }

  void splice(std::string& input, const std::string& other) {
    if (other.empty()) return;
    const std::size_t from = below(other.size());
    const std::string part = other.substr(from, 1 + below(other.size() - from));
    const std::size_t at = below(input.size() + 1);
    if (below(2) == 0) {
      input.insert(at, part);
    } else {
      input.replace(at, part.size(), part);
    }
  }

  void interesting_number(std::string& input) {
    static constexpr std::uint64_t kNumbers[] = {0,          1,
                                                 7,          8,
                                                 16,         127,
                                                 128,        255,
                                                 256,        512,
                                                 4095,       4096,
                                                 0x7FFF,     0x8000,
                                                 0xFFFF,     0x10000,
                                                 4 << 20,    6 << 20,
                                                 0x7FFFFFFF, 0x80000000,
                                                 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF,
                                                 ~0ULL};
    const std::uint64_t number = kNumbers[below(std::size(kNumbers))];
    const std::size_t width = std::size_t{1} << below(4);
    const std::size_t at = below(input.size());
    const std::size_t count = std::min(width, input.size() - at);
    std::memcpy(input.data() + at, &number, count);
  }

  void add_small(std::string& input) {
    char& byte = input[below(input.size())];
    byte = static_cast<char>(byte + static_cast<char>(below(33)) - 16);
  }

  void erase(std::string& input) {
    const std::size_t at = below(input.size());
    input.erase(at, 1 + below(std::min<std::size_t>(input.size() - at, 64)));
  }

  void duplicate(std::string& input) {
    const std::size_t at = below(input.size());
    const std::string part = input.substr(at, 1 + below(64));
    input.insert(below(input.size() + 1), part);
  }

  std::mt19937_64 random_;
  std::size_t max_len_;
};

class Fuzzer {
 public:
  Fuzzer(const Options& options, SharedInput& shared)
      : options_(options), shared_(shared), mutator_(options.seed, options.max_len) {
    for (const std::string& path : options.paths)
      if (fs::is_directory(path)) directories_.push_back(path);
  }

  void run() {
    const auto start = Steady::now();
    for (const std::string& input : starting_inputs()) try_input(input, false);
    if (corpus_.empty()) corpus_.emplace_back();
    const auto end = start + std::chrono::seconds(options_.seconds);
    while (runs_ < options_.runs && (runs_ % 64 != 0 || Steady::now() < end)) {
      // New finds are the most promising: half of the draws come from the last quarter.
      const std::size_t recent = corpus_.size() - corpus_.size() / 4;
      const std::size_t from = mutator_.below(2) == 0 ? recent : 0;
      const std::size_t pick = from + mutator_.below(corpus_.size() - from);
      try_input(mutator_.mutate(corpus_[std::min(pick, corpus_.size() - 1)], corpus_), true);
      if ((runs_ & (runs_ - 1)) == 0) report("pulse", start);
    }
    report("done", start);
  }

 private:
  std::vector<std::string> starting_inputs() const {
    std::vector<std::string> inputs = seeds();
    std::set<fs::path> files;  // Sorted: the order of a directory is not part of the seed.
    for (const std::string& directory : directories_)
      for (const auto& entry : fs::directory_iterator(directory))
        if (entry.is_regular_file()) files.insert(entry.path());
    for (const fs::path& file : files) inputs.push_back(read_file(file));
    return inputs;
  }

  void try_input(const std::string& input, bool save) {
    std::memset(coverage_map, 0, sizeof coverage_map);
    previous_block = 0;
    run_one(input, shared_);
    ++runs_;
    if (!found_something_new()) return;
    corpus_.push_back(input);
    if (!save || directories_.empty()) return;
    const std::string name = to_hex(as_text(sha256(input))).substr(0, 16);
    std::ofstream(fs::path(directories_.front()) / name, std::ios::binary) << input;
  }

  // A cell counts as new when it is hit for the first time, or an order of magnitude more often.
  bool found_something_new() {
    bool found = false;
    for (std::size_t i = 0; i < kMapSize; ++i) {
      if (coverage_map[i] == 0) continue;
      const auto bucket = static_cast<std::uint8_t>(1 << (std::bit_width(coverage_map[i]) - 1));
      if ((seen_[i] & bucket) != 0) continue;
      if (seen_[i] == 0) ++cells_;
      seen_[i] = static_cast<std::uint8_t>(seen_[i] | bucket);
      found = true;
    }
    return found;
  }

  void report(const char* what, Steady::time_point start) const {
    const double seconds = std::chrono::duration<double>(Steady::now() - start).count();
    std::fprintf(stderr, "%s: %llu runs, %zu cells, %zu inputs kept, %.0f runs/s\n", what,
                 static_cast<unsigned long long>(runs_), cells_, corpus_.size(),
                 static_cast<double>(runs_) / std::max(seconds, 0.001));
  }

  Options options_;
  SharedInput& shared_;
  Mutator mutator_;
  std::vector<std::string> directories_;
  std::vector<std::string> corpus_;
  std::array<std::uint8_t, kMapSize> seen_{};
  std::size_t cells_ = 0;
  std::uint64_t runs_ = 0;
};

std::optional<Options> parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with("-")) {
      options.paths.emplace_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : parse_decimal(argument.substr(equals + 1));
    if (!value) return std::nullopt;
    const std::string_view name = argument.substr(1, equals - 1);
    if (name == "runs") {
      options.runs = *value;
    } else if (name == "seconds") {
      options.seconds = *value;
    } else if (name == "seed") {
      options.seed = *value;
    } else if (name == "max_len") {
      options.max_len = static_cast<std::size_t>(*value);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

void run_all(const Options& options, SharedInput& shared) {
  bool ran_files = false;
  for (const std::string& path : options.paths) {
    if (fs::is_directory(path)) continue;
    run_one(read_file(path), shared);
    ran_files = true;
  }
  // On the heap: the coverage map is too large for a stack.
  if (!ran_files) std::make_unique<Fuzzer>(options, shared)->run();
}

int main_of(int count, char** arguments) {
  const auto options = parse(count, arguments);
  if (!options) {
    std::fprintf(stderr,
                 "usage: %s [-runs=N] [-seconds=N] [-seed=N] [-max_len=N] [corpus|file]...\n",
                 arguments[0]);
    return 2;
  }
  for (const std::string& path : options->paths) {
    if (fs::exists(path)) continue;
    std::fprintf(stderr, "%s: no such file or directory\n", path.c_str());
    return 2;
  }
  SharedInput shared(std::max(options->max_len, kSharedSizeMin));
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    run_all(*options, shared);
    std::exit(0);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child, "lost the child");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  shared.save_as(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "slow-" : "crash-");
  return 1;
}

}  // namespace
}  // namespace stanchion::fuzz

int main(int count, char** arguments) {
  return stanchion::fuzz::main_of(count, arguments);
}

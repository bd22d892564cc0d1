#include "runner/child_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/text.h"
#include "os/fd.h"

namespace stanchion::runner {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How soon it is looked again whether a group has ended whose shell has: first, and at most.
constexpr milliseconds kLookAgain(10);
constexpr milliseconds kLookAgainMax(500);

// A file without a name that holds the body, so that a child that does not read cannot block us.
Result<os::Fd> file_of(std::string_view body) {
  os::Fd file(::memfd_create("message", MFD_CLOEXEC));
  if (!file.valid()) return fail("cannot make a file for the body", errno);
  while (!body.empty()) {
    const ssize_t written = ::write(file.get(), body.data(), body.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail("cannot write the body", errno);
    body.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return fail("cannot rewind the body", errno);
  return file;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Whether the child has ended. It stays a zombie, so that no other group can get its number.
bool has_ended(pid_t child) {
  siginfo_t end{};
  return ::waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         end.si_pid == child;
}

// Whether the process, of which /proc has this entry, is of the group and has not ended.
bool runs_in(pid_t group, int processes, const char* process) {
  const os::Fd file(
      ::openat(processes, fmt::format("{}/stat", process).c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = file.valid() ? ::read(file.get(), text, sizeof text) : -1;
  if (size <= 0) return false;
  // "77 (a name (with anything)) S 1 77 …": state, parent, group.
  const std::string_view line(text, static_cast<std::size_t>(size));
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string_view::npos) return false;
  const std::string rest(line.substr(name_end + 2));
  char state = 0;
  int its_group = 0;
  return std::sscanf(rest.c_str(), "%c %*d %d", &state, &its_group) == 2 && its_group == group &&
         state != 'Z' && state != 'X';
}

// Whether processes of the group are there besides its leader, a zombie. True if that is unknown.
bool others_run(pid_t group) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return true;
  const std::string leader = fmt::to_string(group);
  while (const dirent* const entry = ::readdir(processes.get()))
    if (parse_decimal(entry->d_name) && entry->d_name != leader &&
        runs_in(group, ::dirfd(processes.get()), entry->d_name))
      return true;
  return false;
}

// Waits until the child has ended, or the job is told to stop, or the time has come. Negative: such
// an event is not waited for.
void wait_for_event(int child, int told, std::optional<SteadyClock::time_point> until) {
  int left = -1;
  if (until) {
    const auto time = std::chrono::ceil<milliseconds>(*until - SteadyClock::now()).count();
    left = static_cast<int>(std::clamp<long>(time, 0, 1'000'000));
  }
  pollfd events[2] = {{child, POLLIN, 0}, {told, POLLIN, 0}};
  // A wait that is interrupted is repeated by the caller.
  static_cast<void>(::poll(events, 2, left));
}

}  // namespace

void Child::signal_group(int signal) const {
  ::kill(-id, signal);
}

Result<Child> spawn_shell(const std::string& command, std::vector<std::string> environment,
                          int input, int output) {
  std::vector<std::string> words{"/bin/sh", "-c", command};
  for (char** at = environ; *at != nullptr; ++at) environment.emplace_back(*at);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that Ctrl-C on a terminal reaches only the worker.
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  Child child;
  const int failed = ::posix_spawn(&child.id, words[0].c_str(), &actions, &attributes,
                                   pointers_to(words).data(), pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return fail("cannot start /bin/sh", failed);
  child.handle = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.id, 0)));
  if (!child.handle.valid()) {
    const int error = errno;
    child.signal_group(SIGKILL);
    ::waitpid(child.id, nullptr, 0);
    return fail("cannot watch the process, which was killed", error);
  }
  return child;
}

std::string end_in_words(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("ended with {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = ::sigdescr_np(signal);
  return fmt::format("was ended by signal {} ({})", signal, name == nullptr ? "?" : name);
}

std::vector<std::string> environment_of(const worker::TaskInformation& task) {
  std::vector<std::string> environment{"SQS_MESSAGE_ID=" + task.message_id,
                                       "SQS_QUEUE_NAME=" + task.queue_name,
                                       "SQS_QUEUE_URL=" + task.queue_url,
                                       "SQS_QUEUE_ARN=" + task.queue_arn,
                                       "SQS_RECEIPT_HANDLE=" + task.receipt_handle,
                                       "SQS_RECEIVE_COUNT=" + std::to_string(task.receive_count),
                                       std::string("SQS_POISON=") + (task.poison ? "1" : "0")};
  const auto group = task.attributes.find("MessageGroupId");
  if (group != task.attributes.end()) environment.push_back("SQS_GROUP_ID=" + group->second);
  return environment;
}

Result<ChildEnd> run_child(const std::string& command, const worker::TaskInformation& task,
                           std::chrono::seconds timeout) {
  auto input = file_of(task.body);
  if (!input) return std::unexpected(input.error());
  const os::Fd told(::eventfd(0, EFD_CLOEXEC));
  if (!told.valid()) return fail("cannot make an event", errno);
  const auto child = spawn_shell(command, environment_of(task), input->get());
  if (!child) return std::unexpected(child.error());
  const std::stop_callback tell(task.stop(), [&] { ::eventfd_write(told.get(), 1); });

  std::optional<SteadyClock::time_point> deadline;
  if (timeout.count() > 0) deadline = SteadyClock::now() + timeout;
  std::optional<SteadyClock::time_point> kill_at;  // Set once SIGTERM was sent.
  bool killed = false;
  milliseconds look_again = kLookAgain;
  ChildEnd end;
  while (true) {
    const bool ended = has_ended(child->id);
    const auto now = SteadyClock::now();
    // What a command leaves behind that ends by itself is meant to go on. But what was told to end
    // must not go on with a message that others get, also if the shell has obeyed. What the kernel
    // does not let go after SIGKILL is not waited for any longer.
    const bool stuck = killed && now >= *kill_at;
    if (ended && (!kill_at || stuck || !others_run(child->id))) break;
    const bool late = deadline && now >= *deadline;
    if (kill_at && now >= *kill_at) {
      child->signal_group(SIGKILL);
      killed = true;
      kill_at = now + kKillAfter;
    } else if (!kill_at && (late || task.stop().stop_requested())) {
      end.timed_out = late;
      child->signal_group(SIGTERM);
      kill_at = now + kKillAfter;
    }
    auto until = kill_at ? kill_at : deadline;
    if (ended) {
      until = std::min(*kill_at, now + look_again);
      look_again = std::min(2 * look_again, kLookAgainMax);
    }
    wait_for_event(ended ? -1 : child->handle.get(), kill_at ? -1 : told.get(), until);
  }
  // One that was begun while we looked.
  if (kill_at) child->signal_group(SIGKILL);
  int status = 0;
  ::waitpid(child->id, &status, 0);
  end.wait_status = status;
  end.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace stanchion::runner

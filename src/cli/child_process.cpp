#include "cli/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

#include "base/launch_environment.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/command.h"
#include "cli/program.h"
#include "io/atomic_file.h"
#include "mixers/python_layer.h"

extern char** environ;

namespace lra::cli {
namespace {

// Process id of the parent. Not an argument: those are recorded as the command of a run.
constexpr const char* kParentVariable = "LRA_PARENT_PROCESS";
constexpr std::string_view kParentEntry = "LRA_PARENT_PROCESS=";
// A child's messages: a file in memory that its parent reads when the child has ended.
constexpr int kErrorFd = 3;
constexpr size_t kErrorBytes = 2000;
constexpr size_t kMostBytes = size_t{16} << 20;  // of what a process prints

}  // namespace

// A file in memory that a process writes to.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("lra-output", MFD_CLOEXEC)) {
    if (fd_ < 0) throw io_error("lra", "cannot create a file in memory", errno);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int fd() const { return fd_; }
  std::string text(size_t most) const {
    std::string all;
    char buffer[4096];
    while (all.size() < most) {
      const ssize_t count = ::pread(fd_, buffer, std::min(sizeof buffer, most - all.size()),
                                    static_cast<off_t>(all.size()));
      if (count == 0) break;
      if (count < 0 && errno != EINTR)
        throw io_error("lra", "cannot read a process's output", errno);
      if (count > 0) all.append(buffer, static_cast<size_t>(count));
    }
    return all;
  }

 private:
  int fd_;
};

namespace {

// 128 + signal when a signal ended it; nothing if it still runs, which only WNOHANG among the
// `options` of waitpid lets happen.
std::optional<int> exit_code_of(pid_t process, int options = 0) {
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(process, &status, options)) < 0) {
    if (errno != EINTR) throw io_error("lra", "cannot wait for a process", errno);
  }
  if (ended == 0) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The null-terminated list that C wants, which changes none of them; `words` must outlive it.
std::vector<char*> c_strings(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Starts `file`, searched on PATH, with nothing on standard input. One that `is_ours` reports its
// errors to us, and has a process group, and signals blocked until it handles them. Returns errno.
int spawn(pid_t& process, const std::string& file, const std::vector<std::string>& words,
          char* const* variables, const MemoryFile& output, const MemoryFile& errors,
          bool is_ours) {
  const std::vector<char*> arguments = c_strings(words);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.fd(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.fd(), is_ours ? kErrorFd : STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (is_ours) {
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    const sigset_t blocked = save_signals();
    posix_spawnattr_setsigmask(&attributes, &blocked);
  }
  const int problem =
      posix_spawnp(&process, file.c_str(), &actions, &attributes, arguments.data(), variables);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return problem;
}

std::vector<std::string> child_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    if (!std::string_view(*entry).starts_with(kParentEntry)) variables.emplace_back(*entry);
  }
  variables.push_back(std::string(kParentEntry).append(std::to_string(::getpid())));
  return variables;
}

}  // namespace

std::vector<std::string> words_of_self(const std::string& program) {
  const char* interpreter = mixers::has_interpreter() ? std::getenv(kInterpreterVariable) : nullptr;
  if (!interpreter) return {program};
  return {interpreter, "-m", "lra"};
}

void refuse_ranks() {
  const Launch launch = launch_of_this_process();
  if (launch.num_ranks == 1) return;
  refuse(launch.name(), "this command starts its own processes and cannot be one of several ranks",
         "'lra train', the command that several processes can share",
         "start it once, without torchrun or srun");
}

void Children::start(size_t id, const std::vector<std::string>& arguments) {
  refuse_ranks();
  hand_signals_on();  // earlier requests do not concern the new child
  const auto output = std::make_shared<MemoryFile>(), errors = std::make_shared<MemoryFile>();
  std::vector<std::string> words = words_of_self("lra");
  const std::string file = words.size() > 1 ? words[0] : "/proc/self/exe";
  words.insert(words.end(), arguments.begin(), arguments.end());
  const std::vector<std::string> variables = child_environment();
  pid_t process = 0;
  const int problem =
      spawn(process, file, words, c_strings(variables).data(), *output, *errors, true);
  if (problem != 0) throw io_error("lra", "cannot start a process", problem);
  children_.push_back({.id = id, .process = process, .output = output, .errors = errors});
}

void Children::hand_signals_on() {
  const int request = take_save_request();
  for (Child& child : children_) {
    if (stop_requested() && !child.told_to_stop) {
      ::kill(child.process, SIGTERM);
      child.told_to_stop = true;
    }
    if (request) ::kill(child.process, request);
  }
}

Children::Ended Children::wait_for_one(const std::function<void()>& meanwhile) {
  for (;;) {
    for (auto child = children_.begin(); child != children_.end(); ++child) {
      const std::optional<int> exit_code = exit_code_of(child->process, WNOHANG);
      if (!exit_code) continue;
      const Child ended = *child;
      children_.erase(child);
      return {ended.id,
              {*exit_code, ended.output->text(kMostBytes), ended.errors->text(kErrorBytes)}};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    hand_signals_on();
    if (meanwhile) meanwhile();
  }
}

ChildResult run_self(const std::vector<std::string>& arguments) {
  Children one;
  one.start(0, arguments);
  return one.wait_for_one().result;
}

ChildResult run_program(const std::vector<std::string>& words) {
  const MemoryFile output, errors;
  pid_t process = 0;
  const int problem = spawn(process, words[0], words, environ, output, errors, false);
  if (problem == ENOENT) {
    refuse(words[0], "program not found on PATH", "", "is it installed on this machine?");
  }
  if (problem != 0) throw io_error(words[0], "cannot be started", problem);
  const int exit_code = exit_code_of(process).value();
  const std::string complaint = errors.text(kMostBytes);
  return {.exit_code = exit_code,
          .output = output.text(kMostBytes),
          // Line ends become spaces; none is left at the end.
          .error = printable(complaint.substr(0, complaint.find_last_not_of(" \n") + 1))};
}

void tell_parent(const std::string& error) {
  const char* parent = std::getenv(kParentVariable);
  if (!parent || std::to_string(::getppid()) != parent) return;
  write_all(kErrorFd, std::as_bytes(std::span(error)).first(std::min(error.size(), kErrorBytes)));
}

void follow_parent() {
  const char* parent = std::getenv(kParentVariable);
  if (!parent) return;
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have ended before it could be followed.
  if (std::to_string(::getppid()) != parent) std::raise(SIGTERM);
  // A process outside the terminal's foreground group that writes messages would be put to sleep
  // where "stty tostop" is set.
  std::signal(SIGTTOU, SIG_IGN);
}

ExitCode failure_code(int child_exit_code) {
  if (child_exit_code == 128 + SIGKILL) return ExitCode::kUserError;
  for (const ExitCode code : {ExitCode::kUserError, ExitCode::kDiverged, ExitCode::kIoError}) {
    if (child_exit_code == static_cast<int>(code)) return code;
  }
  return ExitCode::kOurBug;
}

std::string describe_end(int child_exit_code) {
  if (child_exit_code == 128 + SIGKILL) return "signal 9 (killed, as when memory runs out)";
  if (child_exit_code > 128) return "signal " + std::to_string(child_exit_code - 128);
  return "exit code " + std::to_string(child_exit_code);
}

}  // namespace lra::cli

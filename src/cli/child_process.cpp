#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/launch_environment.h"
#include "base/stop_flag.h"

extern char** environ;

namespace lra::cli {
namespace {

// Process id of the parent. Not an argument: those are recorded as the command of a run.
constexpr const char* kParentVariable = "LRA_PARENT_PROCESS";
constexpr std::string_view kParentEntry = "LRA_PARENT_PROCESS=";

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw io_error("pipe", "cannot be made", errno);
  }
  ~Pipe() {
    ::close(ends_[1]);
    if (ends_[0] >= 0) ::close(ends_[0]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int write_end() const { return ends_[1]; }
  // To be closed by the caller.
  int take_read_end() { return std::exchange(ends_[0], -1); }

 private:
  int ends_[2] = {-1, -1};
};

// How the child differs from us: standard input, standard output, process group.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes_, 0);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<std::string> child_environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    if (!std::string_view(*entry).starts_with(kParentEntry)) variables.emplace_back(*entry);
  }
  variables.push_back(std::string(kParentEntry).append(std::to_string(::getpid())));
  return variables;
}

// The null-terminated list that C wants; `words` must outlive it.
std::vector<char*> c_strings(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<std::string> words = {"lra"}, variables = child_environment();
  words.insert(words.end(), arguments.begin(), arguments.end());
  const SpawnSettings settings(output);
  pid_t child = 0;
  const int code = posix_spawn(&child, "/proc/self/exe", settings.actions(), settings.attributes(),
                               c_strings(words).data(), c_strings(variables).data());
  if (code != 0) throw io_error("lra", "cannot start a process", code);
  return child;
}

}  // namespace

void refuse_ranks() {
  const Launch launch = launch_of_this_process();
  if (launch.num_ranks == 1) return;
  throw Error(
      {.where = launch.name(),
       .what = "this command starts processes of its own and cannot be one of several ranks",
       .expected = "'lra train', the command that several processes can share",
       .advice = "start it once, without torchrun or srun"});
}

Children::~Children() {
  for (const Child& child : children_) ::close(child.output_fd);
}

void Children::start(size_t id, const std::vector<std::string>& arguments) {
  refuse_ranks();
  Pipe pipe;
  const pid_t process = spawn(arguments, pipe.write_end());
  children_.push_back(
      {.id = id, .process = process, .output_fd = pipe.take_read_end(), .output = {}});
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

// False at the end of the output.
bool Children::read_some(Child& child) {
  char buffer[4096];
  const ssize_t count = ::read(child.output_fd, buffer, sizeof buffer);
  if (count > 0) child.output.append(buffer, static_cast<size_t>(count));
  if (count < 0 && errno != EINTR) throw io_error("lra", "cannot read a process's output", errno);
  return count != 0;
}

Children::Ended Children::wait_for_one() {
  for (;;) {
    std::vector<pollfd> waiting;
    for (const Child& child : children_) {
      waiting.push_back({.fd = child.output_fd, .events = POLLIN, .revents = 0});
    }
    const int ready = ::poll(waiting.data(), waiting.size(), 100);
    hand_signals_on();
    for (size_t i = 0; ready > 0 && i < waiting.size(); ++i) {
      if (waiting[i].revents == 0 || read_some(children_[i])) continue;
      const Child ended = std::move(children_[i]);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      ::close(ended.output_fd);
      int status = 0;
      while (::waitpid(ended.process, &status, 0) < 0 && errno == EINTR) {
      }
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      return {ended.id, {.exit_code = code, .output = ended.output}};
    }
  }
}

ChildResult run_self(const std::vector<std::string>& arguments) {
  Children one;
  one.start(0, arguments);
  return one.wait_for_one().result;
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

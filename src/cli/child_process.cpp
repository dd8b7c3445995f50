#include "cli/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"
#include "base/stop_flag.h"

extern char** environ;

namespace lra::cli {
namespace {

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw io_error("pipe", "cannot be made", errno);
  }
  ~Pipe() {
    close_write();
    ::close(ends_[0]);
  }
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

pid_t start(const std::vector<std::string>& arguments, int output) {
  std::vector<std::string> words = {"lra"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int code = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) throw io_error("lra", "cannot start a process", code);
  return child;
}

// Reads to the end of the child's output; hands a stop request on once.
std::string read_output(int fd, pid_t child) {
  std::string output;
  bool told = false;
  for (;;) {
    pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waiting, 1, 100);
    if (stop_requested() && !told) {
      ::kill(child, SIGTERM);
      told = true;
    }
    if (ready <= 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0) return output;
    if (count > 0) output.append(buffer, static_cast<size_t>(count));
    if (count < 0 && errno != EINTR) throw io_error("lra", "cannot read a process's output", errno);
  }
}

}  // namespace

ChildResult run_self(const std::vector<std::string>& arguments) {
  Pipe pipe;
  const pid_t child = start(arguments, pipe.write_end());
  pipe.close_write();
  ChildResult result;
  result.output = read_output(pipe.read_end(), child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace lra::cli

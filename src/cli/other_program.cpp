#include "cli/other_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/text_format.h"

extern char** environ;

namespace lra::cli {
namespace {

// A file in memory that a process writes to.
class Output {
 public:
  Output() : fd_(::memfd_create("output", MFD_CLOEXEC)) {
    if (fd_ < 0) throw io_error("output", "cannot be made", errno);
  }
  ~Output() { ::close(fd_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  int fd() const { return fd_; }
  std::string text() const {
    std::string all;
    char buffer[4096];
    for (off_t at = 0;; at = static_cast<off_t>(all.size())) {
      const ssize_t count = ::pread(fd_, buffer, sizeof buffer, at);
      if (count == 0) return all;
      if (count > 0) all.append(buffer, static_cast<size_t>(count));
      if (count < 0 && errno != EINTR) throw io_error("output", "cannot be read", errno);
    }
  }

 private:
  int fd_;
};

// Line ends become spaces; none is left at the end.
std::string one_line(const std::string& text) {
  const size_t last = text.find_last_not_of(" \n");
  return last == std::string::npos ? "" : printable(text.substr(0, last + 1));
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw io_error("process", "cannot be waited for", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProgramEnd run_program(const std::vector<std::string>& words) {
  const Output output, errors;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.fd(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.fd(), STDERR_FILENO);
  pid_t process = 0;
  const int problem =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem == ENOENT) {
    throw Error({.where = words[0],
                 .what = "there is no such program on PATH",
                 .advice = "is it installed on this machine?"});
  }
  if (problem != 0) throw io_error(words[0], "cannot be started", problem);
  const int exit_code = wait_for(process);
  return {.exit_code = exit_code, .output = output.text(), .errors = one_line(errors.text())};
}

}  // namespace lra::cli

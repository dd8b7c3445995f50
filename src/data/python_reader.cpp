#include "data/python_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/quoted.h"
#include "data/files.h"
#include "data/stopping.h"
#include "io/atomic_file.h"
#include "io/progress.h"
#include "io/struct_json.h"

extern char** environ;

namespace lra {

LRA_FIELDS(ReadSettings, label, split, sequences, ignore, input)
LRA_FIELDS(OwnReading, input, why, examples, sequences, channels, shortest, longest, largest,
           labels, first, groups, files, named_by, columns, ignored)

namespace {

// Finds the modules of the reader in the request. The folder in which the user works is left out of
// the search for all others: a numpy.py of the user's is not meant.
constexpr const char* kBootstrap = R"(
import sys
sys.path[:] = [path for path in sys.path if path]
import importlib.util, json
request = json.load(sys.stdin)
texts = request.pop("modules")
class Modules:
    def find_spec(self, name, path, target=None):
        package = name == "lra_reading"
        return importlib.util.spec_from_loader(name, self, is_package=package) if name in texts else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(texts[module.__name__], module.__name__, "exec"), module.__dict__)
sys.meta_path.insert(0, Modules())
from lra_reading.main import main
main(request)
)";

// An unnamed file in memory.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("lra", MFD_CLOEXEC)) {
    if (fd_ < 0) throw io_error("memfd_create", "no file in memory can be made", errno);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return fd_; }
  // Writes the content, to be read from its start.
  void set(std::span<const std::byte> content) const {
    const int failed = write_all(fd_, content);
    if (failed) throw io_error("memfd_create", "a file in memory cannot be written", failed);
    ::lseek(fd_, 0, SEEK_SET);
  }
  std::vector<std::byte> content() const {
    std::vector<std::byte> bytes(static_cast<size_t>(::lseek(fd_, 0, SEEK_END)));
    size_t read = 0;
    while (read < bytes.size()) {
      const ssize_t count =
          ::pread(fd_, bytes.data() + read, bytes.size() - read, static_cast<off_t>(read));
      if (count <= 0) throw io_error("memfd_create", "a file in memory cannot be read", errno);
      read += static_cast<size_t>(count);
    }
    return bytes;
  }

 private:
  int fd_;
};

// The request on standard input, lines on a pipe, and the files `out` and `in` (-1: none).
class ReaderProcess {
 public:
  ReaderProcess(const std::string& python, const std::string& request, int out, int in);
  ~ReaderProcess();
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  // The next line; nothing at the end. Throws lra::Error when a stop is requested.
  std::optional<std::string> next_line();

 private:
  pid_t child_ = -1;
  int lines_ = -1;
  std::string buffer_;
};

ReaderProcess::ReaderProcess(const std::string& python, const std::string& request, int out,
                             int in) {
  const MemoryFile input;
  input.set(std::as_bytes(std::span(request)));
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw io_error(python, "cannot be started", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Copies under the same numbers, which the child keeps open; before glibc 2.29 no file copies
  // onto itself.
  const int out_copy = ::fcntl(out, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int in_copy = in < 0 ? -1 : ::fcntl(in, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  posix_spawn_file_actions_adddup2(&actions, out_copy, out);
  if (in_copy >= 0) posix_spawn_file_actions_adddup2(&actions, in_copy, in);
  std::array<char*, 4> words = {const_cast<char*>(python.c_str()), const_cast<char*>("-c"),
                                const_cast<char*>(kBootstrap), nullptr};
  const int code =
      ::posix_spawnp(&child_, python.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe[1]);
  ::close(out_copy);
  if (in_copy >= 0) ::close(in_copy);
  lines_ = pipe[0];
  if (code != 0) child_ = -1;  // the same as a program that says nothing
}

ReaderProcess::~ReaderProcess() {
  if (lines_ >= 0) ::close(lines_);
  if (child_ < 0) return;
  ::kill(child_, SIGTERM);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::string> ReaderProcess::next_line() {
  constexpr int kPollMs = 200;
  while (true) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    throw_if_stopped();
    pollfd waiting{.fd = lines_, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, kPollMs) <= 0) continue;
    std::array<char, 1 << 16> block{};
    const ssize_t count = ::read(lines_, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    buffer_.append(block.data(), static_cast<size_t>(count));
  }
}

[[noreturn]] void refuse(const Json& parts) {
  const auto part = [&](const char* name) { return parts.value(name, std::string()); };
  throw Error({.where = part("where"),
               .what = part("what"),
               .expected = part("expected"),
               .advice = part("advice"),
               .code = parts.value("io", false) ? ExitCode::kIoError : ExitCode::kUserError});
}

[[noreturn]] void refuse_python(const std::string& python, const std::string& lacks) {
  const std::string named = "name a Python that has it in LRA_INTERPRETER";
  if (lacks.empty()) {
    throw Error({.where = "data import",
                 .what = "files are read by Python, but " + in_quotes(python, 100) +
                         " could not be run as Python, or ended early",
                 .advice = named});
  }
  throw Error(
      {.where = "data import",
       .what = "files are read by the Python package " + lacks + ", which " +
               in_quotes(python, 100) + " does not have",
       .advice = "install it with: " + python + " -m pip install " + lacks + ", or " + named});
}

// Sends a request and returns the answer. Throws lra::Error, as read_with_python() does.
Json ask(Json request, int out, int in, const std::function<void(int64_t)>& count_rows) {
  const std::string python = reader_interpreter();
  Json modules = Json::object();
  for (const ReaderModule& module : reader_modules()) modules[module.name] = module.text;
  request["modules"] = std::move(modules);
  request["out"] = out;
  request["in"] = in;
  ReaderProcess process(python, json_text(request), out, in);
  while (const auto line = process.next_line()) {
    const Json said = parse_json(*line, "the reader of files");
    if (said.contains("rows")) {
      count_rows(said["rows"].get<int64_t>());
    } else if (said.contains("done")) {
      return said["done"];
    } else if (said.contains("error")) {
      refuse(said["error"]);
    } else if (said.contains("lacks")) {
      refuse_python(python, said["lacks"].get<std::string>());
    } else if (said.contains("crash")) {
      throw CheckFailure("the reader of files failed:\n" + said["crash"].get<std::string>());
    }
  }
  throw_if_stopped();
  refuse_python(python, "");
}

}  // namespace

std::string reader_interpreter() {
  if (const char* named = std::getenv("LRA_INTERPRETER"); named && *named) return named;
  return is_file(LRA_SETUP_PYTHON) ? LRA_SETUP_PYTHON : "python3";
}

OwnExamples read_with_python(const std::vector<std::string>& files, const ReadSettings& settings,
                             const std::string& folder, Progress& progress) {
  FrameFile frames(folder);
  const Json done = ask({{"files", files}, {"settings", to_json_value(settings)}},
                        frames.descriptor(), -1, [&](int64_t rows) { progress.update(rows); });
  OwnReading reading;
  struct_from_json(JsonFields(done, "the reader of files"), reading);
  return {std::move(reading), std::move(frames)};
}

PickledBatch read_pickle_with_python(std::span<const std::byte> content, const std::string& name) {
  const MemoryFile in, out;
  in.set(content);
  Json texts = ask({{"pickle", name}}, out.descriptor(), in.descriptor(), [](int64_t) {});
  return {std::move(texts), out.content()};
}

}  // namespace lra

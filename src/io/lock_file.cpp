#include "io/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/quoted.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

// True if `path` still names the open file, which its last owner may have removed.
bool still_named(int fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// Boot id of the running kernel, which holds the locks; empty if unknown.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// True for a file that try_lock_file wrote, or an empty one (a crash may leave zeros); any other
// file belongs to somebody else.
bool is_lock_file(int fd) {
  std::string text(128, '\0');
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  struct stat info {};
  if (length < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  text.resize(static_cast<size_t>(length));
  return info.st_size < 128 && text.find_first_not_of(std::string_view("0123456789abcdef- \n\0",
                                                                       20)) == std::string::npos;
}

Error no_lock_file(const std::string& path) {
  return Error({.where = path,
                .what = "has the name of a lock file but is not one of this program's",
                .advice = "move it away, or choose another place"});
}

[[noreturn]] void refuse_without_locks(const std::string& path, int problem) {
  const bool has_none = problem == ENOSYS || problem == ENOLCK || problem == EOPNOTSUPP;
  if (!has_none) throw io_error(path, "cannot be locked", problem);
  throw Error({.where = path,
               .what = "cannot be locked: this file system has no flock",
               .advice = "choose a folder on another file system, mount this one with the option "
                         "flock, or set LRA_LOCKS=none if no other process writes there",
               .code = ExitCode::kIoError});
}

}  // namespace

bool takes_locks() {
  const char* named = std::getenv("LRA_LOCKS");
  if (!named || !*named) return true;
  if (std::string_view(named) == "none") return false;
  throw Error(
      {.where = "LRA_LOCKS", .what = "is " + in_quotes(named), .expected = "none, or unset"});
}

int try_lock_file(const std::string& path) {
  for (;;) {
    // A pipe would block, and the target of a link is not ours to change.
    const int fd = open_file(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR)) throw no_lock_file(path);
    if (fd < 0) throw io_error(path, "the lock file cannot be opened", errno);
    int result = 0;
    if (takes_locks()) {
      do result = ::flock(fd, LOCK_EX | LOCK_NB);
      while (result != 0 && errno == EINTR);
    }
    const int problem = result == 0 ? 0 : errno;
    if (problem == 0 && still_named(fd, path)) {
      if (!is_lock_file(fd)) {
        ::close(fd);
        throw no_lock_file(path);
      }
      // The text is only for people, so a full disk does not matter.
      const std::string owner = std::to_string(::getpid()) + " " + boot_id();
      if (::ftruncate(fd, 0) == 0) write_all(fd, std::as_bytes(std::span(owner)));
      return fd;
    }
    ::close(fd);
    if (problem == EWOULDBLOCK) return -1;
    if (problem != 0) refuse_without_locks(path, problem);
  }
}

bool is_locked(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool free = ::flock(fd, LOCK_SH | LOCK_NB) == 0;
  const bool locked = !free && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

LockOwner lock_owner(const std::string& path) {
  std::string text(64, '\0');
  const int fd = open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  const ssize_t length = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  const size_t space = text.find(' ');
  const std::string process = text.substr(0, space);
  for (const char c : process) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return {};
  }
  const std::string machine = space == std::string::npos ? "" : text.substr(space + 1);
  return {.process = process, .is_here = machine.empty() || machine == boot_id()};
}

FileLock::FileLock(const std::string& path, const std::string& what, AtEnd at_end)
    : path_(path), at_end_(at_end), fd_(try_lock_file(path)) {
  // is_locked() of another process may hold it for an instant.
  for (int again = 0; fd_ < 0 && again < 5; ++again) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fd_ = try_lock_file(path);
  }
  if (fd_ >= 0) return;
  const LockOwner owner = lock_owner(path);
  const std::string place = owner.is_here ? "" : " of another machine";
  const std::string process =
      owner.process.empty() ? "" : " (process " + owner.process + place + ")";
  throw Error({.where = path,
               .what = what + " is in use by another process" + process,
               .advice = "wait until it has ended, or choose another place"});
}

FileLock::FileLock(const std::string& path, const std::function<void()>& waiting)
    : path_(path), at_end_(AtEnd::kRemoved) {
  while ((fd_ = try_lock_file(path)) < 0) {
    waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

FileLock::~FileLock() {
  if (at_end_ == AtEnd::kRemoved) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace lra

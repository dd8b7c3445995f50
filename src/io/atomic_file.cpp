#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text_format.h"
#include "io/input_file.h"

namespace lra {
namespace {

// A leading dot and the process id: hidden from globs, and two processes never meet.
std::string temporary_name(const std::string& path, int attempt) {
  const size_t slash = path.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, begin) + "." + path.substr(begin) + ".tmp." + std::to_string(::getpid()) +
         "." + std::to_string(attempt);
}

// ".NAME.tmp.PROCESS.ATTEMPT"
bool is_temporary(const std::string& name) {
  constexpr std::string_view kMiddle = ".tmp.";
  const size_t middle = name.rfind(kMiddle);
  return name.starts_with('.') && middle != std::string::npos && middle > 1 &&
         name.find_first_not_of("0123456789.", middle + kMiddle.size()) == std::string::npos;
}

// 0, or errno.
int make_with_parents(std::string folder) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return 0;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string parent = folder_of(folder);
  if (parent != folder && parent != ".") {
    if (const int problem = make_with_parents(parent)) return problem;
  }
  const int problem = ::mkdir(folder.c_str(), 0777) == 0 ? 0 : errno;
  if (problem == 0) sync_folder(parent);
  // Another process may have made it meanwhile.
  if (problem != EEXIST || std::filesystem::is_directory(folder, ignored)) {
    return problem == EEXIST ? 0 : problem;
  }
  return ENOTDIR;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.rfind('/', last);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int open_file(const std::string& path, int flags, unsigned mode) {
  int fd;
  do fd = ::open(path.c_str(), flags, mode);
  while (fd < 0 && errno == EINTR);
  return fd;
}

int sync_file(int fd) {
  while (::fsync(fd) != 0) {
    // Some file systems have no such operation for folders.
    if (errno == EINVAL || errno == EROFS) return 0;
    if (errno != EINTR) return errno;
  }
  return 0;
}

void sync_folder(const std::string& folder) {
  const int fd = open_file(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may be written but not listed cannot be opened; the file itself is safe.
  if (fd < 0 && errno == EACCES) return;
  const int problem = fd < 0 ? errno : sync_file(fd);
  if (fd >= 0) ::close(fd);
  if (problem) throw io_error(folder, "cannot be flushed", problem);
}

void move_into_place(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw io_error(to, "cannot rename " + from, errno);
  sync_folder(folder_of(to));
}

int write_all(int fd, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    data = data.subspan(static_cast<size_t>(written));
  }
  return 0;
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw Error({.where = path,
                 .what = S_ISDIR(info.st_mode) ? "is a folder" : "is not a regular file",
                 .expected = "a file to replace, or nothing",
                 .advice = "choose another name"});
  }
  for (int attempt = 0; fd_ < 0; ++attempt) {
    temporary_ = temporary_name(path_, attempt);
    fd_ = open_file(temporary_, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) throw io_error(path_, "cannot be written", errno);
  }
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void AtomicFile::fail(const std::string& what, int errno_value) {
  discard();
  throw io_error(path_, what, errno_value);
}

void AtomicFile::append(std::span<const std::byte> data) {
  LRA_CHECK_GE(fd_, 0);
  if (const int problem = write_all(fd_, data)) fail("cannot be written", problem);
  size_ += data.size();
}

void AtomicFile::append(std::string_view data) {
  append(std::as_bytes(std::span(data.data(), data.size())));
}

void AtomicFile::commit() {
  LRA_CHECK_GE(fd_, 0);
  if (const int problem = sync_file(fd_)) fail("cannot be flushed", problem);
  // Network file systems report a full disk only here.
  const int closed = ::close(std::exchange(fd_, -1));
  if (closed != 0 && errno != EINTR) fail("cannot be closed", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced", errno);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.append(content);
  file.commit();
}

std::string read_file(const std::string& path, uint64_t max_bytes) {
  const InputFile file(path);
  // The size is a hint only: files below /proc say 0, and a file may grow. One byte more shows its
  // end without a second allocation.
  const uint64_t hint = file.size();
  std::string content(hint > 0 ? std::min<uint64_t>(hint, max_bytes) + 1 : 1 << 12, '\0');
  size_t filled = 0;
  while (true) {
    filled += file.read_at(filled, content.data() + filled, content.size() - filled);
    if (filled < content.size() || filled > max_bytes) break;
    content.resize(filled + std::min<size_t>(filled, 1 << 26));
  }
  if (filled > max_bytes) {
    throw Error({.where = path, .what = "the file is larger than " + human_bytes(max_bytes)});
  }
  content.resize(filled);
  return content;
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) {
    throw io_error(folder, "its free space cannot be read", errno);
  }
  return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  do {
    names.clear();
    std::filesystem::directory_iterator entry(folder, failed);
    for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
      names.push_back(entry->path().filename());
    }
  } while (failed == std::errc::interrupted);
  if (failed && failed != std::errc::no_such_file_or_directory) {
    throw io_error(folder, "cannot be searched", failed.value());
  }
  return names;
}

void make_folder(const std::string& path) {
  if (const int problem = make_with_parents(path)) {
    throw io_error(path, "the folder cannot be made", problem);
  }
}

int remove_tree(const std::string& path) {
  std::error_code failed;
  do std::filesystem::remove_all(path, failed);
  while (failed == std::errc::interrupted);
  return failed.value();
}

void remove_temporaries(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    if (is_temporary(name)) ::unlink((folder + "/" + name).c_str());
  }
}

}  // namespace lra

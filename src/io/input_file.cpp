#include "io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "io/atomic_file.h"

namespace lra {

namespace {

// The file that Git LFS leaves in the place of the one that is meant.
bool is_lfs_pointer(int fd, uint64_t size) {
  constexpr std::string_view kBegin = "version https://git-lfs";
  constexpr uint64_t kLargest = 1024;
  if (size < kBegin.size() || size > kLargest) return false;
  std::string begin(kBegin.size(), '\0');
  const ssize_t count = ::pread(fd, begin.data(), begin.size(), 0);
  return count == static_cast<ssize_t>(kBegin.size()) && begin == kBegin;
}

}  // namespace

InputFile::InputFile(const std::string& path, const std::string& expected) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it has no effect on regular files.
  fd_ = open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    if (errno != ENOENT && errno != ENOTDIR) throw io_error(path, "cannot be opened", errno);
    throw Error({.where = path, .what = "there is no such file", .expected = expected});
  }
  struct stat status {};
  const int problem = ::fstat(fd_, &status) == 0 ? 0 : errno;
  if (problem == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
    if (!is_lfs_pointer(fd_, size_)) return;
  }
  ::close(fd_);
  if (problem) throw io_error(path, "cannot be examined", problem);
  if (!S_ISREG(status.st_mode)) {
    throw Error({.where = path,
                 .what = "is not a file",
                 .expected = expected.empty() ? "a regular file" : expected});
  }
  throw Error({.where = path,
               .what = "is a pointer of Git LFS, not the file itself",
               .expected = "the content of the file",
               .advice = "get it with: git lfs pull"});
}

InputFile::~InputFile() { ::close(fd_); }

size_t InputFile::read_at(uint64_t offset, char* out, size_t size) const {
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count =
        ::pread(fd_, out + filled, size - filled, static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw io_error(path_, "cannot be read", errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return filled;
}

}  // namespace lra

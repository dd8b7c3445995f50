#include "tasks/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic_file.h"
#include "base/error.h"
#include "tasks/files.h"

namespace lra::tasks {

InputFile::InputFile(const std::string& path) : path_(path) {
  if (!is_file(path)) {
    throw Error({.where = path, .what = "no such file", .expected = "", .advice = ""});
  }
  fd_ = open_file(path, O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw io_error(path, "cannot open", errno);
}

InputFile::~InputFile() { ::close(fd_); }

size_t InputFile::read_at(uint64_t offset, char* out, size_t size) const {
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count =
        ::pread(fd_, out + filled, size - filled, static_cast<off_t>(offset + filled));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw io_error(path_, "cannot read", errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
  }
  return filled;
}

ReadAt InputFile::reader() const {
  return [this](uint64_t offset, char* out, size_t size) { return read_at(offset, out, size); };
}

}  // namespace lra::tasks

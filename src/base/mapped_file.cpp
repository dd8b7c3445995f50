#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lra {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer; it has no effect on regular files.
  const Descriptor file{open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno != ENOENT && errno != ENOTDIR) throw io_error(path, "cannot be opened", errno);
    throw Error({.where = path, .what = "there is no such file", .expected = "", .advice = ""});
  }
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) throw io_error(path, "cannot be examined", errno);
  if (!S_ISREG(status.st_mode)) {
    throw Error({.where = path, .what = "not a file", .expected = "a regular file", .advice = ""});
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  if (address == MAP_FAILED) throw io_error(path, "cannot be mapped into memory", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace lra

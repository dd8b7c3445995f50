// A file that is no disk's, for parsers that take a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"

namespace lra::fuzz {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    LRA_CHECK_GE(fd_, 0);
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Replaces what the file holds.
  void set(std::span<const std::byte> bytes) {
    LRA_CHECK_EQ(::ftruncate(fd_, static_cast<off_t>(bytes.size())), 0);
    LRA_CHECK_EQ(::pwrite(fd_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace lra::fuzz

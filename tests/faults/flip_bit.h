// Changes one bit of a file in place, and changes it back.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace lra::faults {

inline void flip_bit(const std::string& path, uint64_t bit) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  char byte = 0;
  const auto at = static_cast<off_t>(bit / 8);
  bool done = fd >= 0 && ::pread(fd, &byte, 1, at) == 1;
  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  done = done && ::pwrite(fd, &byte, 1, at) == 1;
  if (fd >= 0) ::close(fd);
  if (!done) throw std::runtime_error("cannot change " + path);
}

}  // namespace lra::faults

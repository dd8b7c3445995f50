// A whole file as read-only memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace lra {

// Maps `path` for reading; the pages are shared with every other process that maps it. The file
// must not shrink while it is mapped (our files are replaced, never rewritten: see atomic_file.h).
// Where the device fails at an access, the kernel ends the process with SIGBUS.
class MappedFile {
 public:
  // Throws lra::Error: exit code 2 when there is no such file or it is not a regular file, 74 for
  // other failures. An empty file gives an empty span.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // Valid as long as this object lives; page aligned.
  std::span<const std::byte> bytes() const { return bytes_; }
  // Takes the pages of `part`, which lies within bytes(), out of this process's memory. They are
  // read again when they are needed.
  static void release(std::span<const std::byte> part);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace lra

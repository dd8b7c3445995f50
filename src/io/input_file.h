// A file that is read, from front to back or at any place. Unlike a mapped one (mapped_file.h) it
// takes no more memory than the caller's buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lra {

class InputFile {
 public:
  // Throws lra::Error: exit code 2 when there is no such file or it is not a regular file, or if it
  // is a pointer of Git LFS, 74 for other failures. Never waits for a pipe's writer. `expected`
  // names the file in messages.
  explicit InputFile(const std::string& path, const std::string& expected = "");
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Returns how many bytes there were, less than `size` only at the end of the file. Several
  // threads may read. Throws lra::Error, exit code 74, when the device fails.
  size_t read_at(uint64_t offset, char* out, size_t size) const;

  // Size when it was opened; 0 for files without a size, as those below /proc.
  uint64_t size() const { return size_; }
  int descriptor() const { return fd_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace lra

// A file that is read with pread, from front to back or at any place: unlike a mapped one it takes
// no more memory than the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tasks/text_lines.h"

namespace lra::tasks {

class InputFile {
 public:
  // Throws lra::Error when there is no such regular file, or it cannot be opened.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Returns how many bytes there were, less than `size` only at the end of the file. Several
  // threads may read. Throws lra::Error when the file cannot be read.
  size_t read_at(uint64_t offset, char* out, size_t size) const;
  // read_at of this file, for read_lines; valid as long as this object lives.
  ReadAt reader() const;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lra::tasks

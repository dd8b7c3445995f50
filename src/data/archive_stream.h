// The bytes of a file, unpacked if it is a gzip, bzip2 or xz file. libarchive unpacks gzip as well,
// but does not compare the checksums; zlib does.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lra {

class ArchiveStream {
 public:
  // `expected` names the kind of archive in messages. Throws lra::Error if `path` is not a regular
  // file (2) or cannot be opened (74).
  ArchiveStream(const std::string& path, const std::string& expected);
  ~ArchiveStream();

  // The next bytes, valid until the next call. None at the end of the file, all of which was read
  // and its checksums compared then; and none after a failure.
  std::span<const char> next() noexcept;
  // Throws the error that occurred: lra::Error for a file that is damaged, cut off or continues
  // behind its end (2), or that cannot be read from the disk (74).
  void check() const;
  bool failed() const { return failure_ != nullptr; }

  // Number of bytes so far, and their number up to the last one that is not 0.
  int64_t size() const { return size_; }
  int64_t end_of_content() const { return end_of_content_; }

  class Source;

 private:
  std::unique_ptr<Source> source_;
  std::vector<char> block_;
  std::exception_ptr failure_;
  int64_t size_ = 0, end_of_content_ = 0;
};

}  // namespace lra

// The bytes of a file, unpacked when it is a gzip file. libarchive unpacks gzip as well, but does
// not compare the checksums of what it unpacked; zlib does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct gzFile_s;

namespace lra::tasks {

class ArchiveStream {
 public:
  // Throws lra::Error when the file cannot be opened.
  explicit ArchiveStream(const std::string& path);

  // The next bytes, valid until the next call. None at the end, and none once problem() says what
  // is wrong with the file.
  std::span<const char> next();
  const std::string& problem() const { return problem_; }

  // Of the bytes so far: how many they are, and how many up to the last one that is not 0.
  int64_t size() const { return size_; }
  int64_t end_of_content() const { return end_of_content_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::unique_ptr<gzFile_s, Close> file_;
  std::vector<char> block_;
  std::string problem_;
  int64_t size_ = 0, end_of_content_ = 0;
};

}  // namespace lra::tasks

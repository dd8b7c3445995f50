#include "tasks/archive_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace lra::tasks {
namespace {
constexpr unsigned kBlockBytes = 1 << 16;
}

void ArchiveStream::Close::operator()(gzFile_s* file) const { gzclose(file); }

ArchiveStream::ArchiveStream(const std::string& path)
    : file_(gzopen(path.c_str(), "rb")), block_(kBlockBytes) {
  if (!file_) throw io_error(path, "cannot be opened", errno);
  gzbuffer(file_.get(), kBlockBytes);
}

std::span<const char> ArchiveStream::next() {
  if (!problem_.empty()) return {};
  const int count = gzread(file_.get(), block_.data(), kBlockBytes);
  // A file that ends too early gives what there is, and then nothing.
  int code = Z_OK;
  const char* message = gzerror(file_.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END && count <= 0) {
    problem_ = *message != '\0' ? message : "cannot be read";
    return {};
  }
  const std::span<const char> bytes(block_.data(), static_cast<size_t>(count));
  const auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](char c) { return c != 0; });
  if (last != bytes.rend()) end_of_content_ = size_ + (bytes.rend() - last);
  size_ += count;
  return bytes;
}

}  // namespace lra::tasks

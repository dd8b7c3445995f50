#include "data/archive_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "io/input_file.h"
#include "io/packed_format.h"

namespace lra {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

// An open file, and the way its errors are reported.
class File {
 public:
  File(const std::string& path, const std::string& expected) : path_(path), expected_(expected) {
    // Looked at before it is opened: a pipe would wait.
    if (!is_file(path)) {
      throw Error({.where = path,
                   .what = is_there(path) ? "is not a file" : "no such file",
                   .expected = expected});
    }
    (void)InputFile(path);  // refuses a pointer of Git LFS
    fd_ = open_file(path, O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) throw io_error(path, "cannot be opened", errno);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return fd_; }
  // 0 at the end.
  size_t read(std::span<char> to) const {
    ssize_t count;
    do count = ::read(fd_, to.data(), to.size());
    while (count < 0 && errno == EINTR);
    if (count < 0) throw io_error(path_, "cannot be read", errno);
    return static_cast<size_t>(count);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        {.where = path_, .what = what, .expected = expected_, .advice = "get a complete copy"});
  }

 private:
  std::string path_, expected_;
  int fd_ = -1;
};

}  // namespace

// Unpacked bytes; 0 of them at the end.
class ArchiveStream::Source {
 public:
  virtual ~Source() = default;
  virtual size_t read(std::span<char> to) = 0;
};

namespace {

class Plain : public ArchiveStream::Source {
 public:
  explicit Plain(std::unique_ptr<File> file) : file_(std::move(file)) {}
  size_t read(std::span<char> to) override { return file_->read(to); }

 private:
  std::unique_ptr<File> file_;
};

// One or more members, which only zeros may follow.
class Gzip : public ArchiveStream::Source {
 public:
  explicit Gzip(std::unique_ptr<File> file) : file_(std::move(file)), packed_(kBlockBytes) {
    constexpr int kGzip = 16;
    LRA_CHECK_EQ(inflateInit2(&stream_, MAX_WBITS + kGzip), Z_OK);
  }
  ~Gzip() override { inflateEnd(&stream_); }

  size_t read(std::span<char> to) override {
    for (;;) {
      if (stream_.avail_in == 0 && !refill()) {
        if (!between_members_) file_->fail("is cut off");
        return 0;
      }
      if (between_members_ && !begin_member()) continue;
      stream_.next_out = reinterpret_cast<Bytef*>(to.data());
      stream_.avail_out = static_cast<uInt>(to.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        between_members_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        file_->fail(std::string("is damaged (") + (stream_.msg ? stream_.msg : "gzip") + ")");
      }
      if (stream_.avail_out < to.size()) return to.size() - stream_.avail_out;
    }
  }

 private:
  bool refill() {
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(file_->read(packed_));
    return stream_.avail_in > 0;
  }
  // False for a byte of padding, which is taken.
  bool begin_member() {
    if (*stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      return false;
    }
    if (*stream_.next_in != 0x1f) file_->fail("continues after its end");
    LRA_CHECK_EQ(inflateReset(&stream_), Z_OK);
    between_members_ = false;
    return true;
  }

  std::unique_ptr<File> file_;
  std::vector<char> packed_;
  z_stream stream_{};
  bool between_members_ = false;
};

// bzip2 and xz, by libarchive, which looks at their checksums.
class Unpacked : public ArchiveStream::Source {
 public:
  explicit Unpacked(std::unique_ptr<File> file)
      : file_(std::move(file)), handle_(archive_read_new(), archive_read_free) {
    LRA_CHECK(handle_ != nullptr);
    archive_read_support_filter_bzip2(handle_.get());
    archive_read_support_filter_xz(handle_.get());
    archive_read_support_format_raw(handle_.get());
    archive_entry* entry = nullptr;
    if (archive_read_open_fd(handle_.get(), file_->descriptor(), kBlockBytes) != ARCHIVE_OK ||
        archive_read_next_header(handle_.get(), &entry) < ARCHIVE_WARN) {
      fail();
    }
  }
  size_t read(std::span<char> to) override {
    const la_ssize_t count = archive_read_data(handle_.get(), to.data(), to.size());
    if (count < 0) fail();
    return static_cast<size_t>(count);
  }

 private:
  [[noreturn]] void fail() const {
    const char* reason = archive_error_string(handle_.get());
    file_->fail(std::string("is damaged (") + (reason ? reason : "no reason given") + ")");
  }

  std::unique_ptr<File> file_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
};

std::unique_ptr<ArchiveStream::Source> open_source(const std::string& path,
                                                   const std::string& expected) {
  auto file = std::make_unique<File>(path, expected);
  std::array<char, kPackedFormatBytes> first{};
  const ssize_t count = ::pread(file->descriptor(), first.data(), first.size(), 0);
  const PackedFormat format =
      packed_format({first.data(), count > 0 ? static_cast<size_t>(count) : 0});
  if (format == PackedFormat::kGzip) return std::make_unique<Gzip>(std::move(file));
  if (format == PackedFormat::kBzip2 || format == PackedFormat::kXz) {
    return std::make_unique<Unpacked>(std::move(file));
  }
  return std::make_unique<Plain>(std::move(file));
}

}  // namespace

ArchiveStream::ArchiveStream(const std::string& path, const std::string& expected)
    : source_(open_source(path, expected)), block_(kBlockBytes) {}

ArchiveStream::~ArchiveStream() = default;

std::span<const char> ArchiveStream::next() noexcept {
  if (failure_) return {};
  size_t count = 0;
  try {
    count = source_->read(block_);
  } catch (...) {
    failure_ = std::current_exception();  // libarchive, which calls this, knows no exceptions
  }
  const std::span<const char> bytes(block_.data(), count);
  const auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](char c) { return c != 0; });
  if (last != bytes.rend()) end_of_content_ = size_ + (bytes.rend() - last);
  size_ += static_cast<int64_t>(count);
  return bytes;
}

void ArchiveStream::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace lra

#include "data/archive_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "io/input_file.h"

namespace lra {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

}  // namespace

class ArchiveStream::Source {
 public:
  virtual ~Source() = default;
  // Unpacked bytes; 0 of them at the end.
  virtual size_t read(std::span<char> to) = 0;

 protected:
  Source(const std::string& path, const std::string& expected)
      : file_(path, expected), path_(path), expected_(expected) {}
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        {.where = path_, .what = what, .expected = expected_, .advice = "get a complete copy"});
  }

  const InputFile file_;
  const std::string path_, expected_;
};

namespace {

// One or more members, which only zeros may follow.
class Gzip : public ArchiveStream::Source {
 public:
  Gzip(const std::string& path, const std::string& expected)
      : Source(path, expected), packed_(kBlockBytes) {
    constexpr int kGzip = 16;
    LRA_CHECK_EQ(inflateInit2(&stream_, MAX_WBITS + kGzip), Z_OK);
  }
  ~Gzip() override { inflateEnd(&stream_); }

  size_t read(std::span<char> to) override {
    for (;;) {
      if (stream_.avail_in == 0 && !refill()) {
        if (!between_members_) fail("is cut off");
        return 0;
      }
      if (between_members_ && !begin_member()) continue;
      stream_.next_out = reinterpret_cast<Bytef*>(to.data());
      stream_.avail_out = static_cast<uInt>(to.size());
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        between_members_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        fail(std::string("is damaged (") + (stream_.msg ? stream_.msg : "gzip") + ")");
      }
      if (stream_.avail_out < to.size()) return to.size() - stream_.avail_out;
    }
  }

 private:
  bool refill() {
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(file_.read_at(offset_, packed_.data(), packed_.size()));
    offset_ += stream_.avail_in;
    return stream_.avail_in > 0;
  }
  // False for a byte of padding, which is taken.
  bool begin_member() {
    if (*stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      return false;
    }
    if (*stream_.next_in != 0x1f) fail("continues after its end");
    LRA_CHECK_EQ(inflateReset(&stream_), Z_OK);
    between_members_ = false;
    return true;
  }

  std::vector<char> packed_;
  uint64_t offset_ = 0;
  z_stream stream_{};
  bool between_members_ = false;
};

// bzip2 and xz, by libarchive, which looks at their checksums, and files that are not packed.
class Other : public ArchiveStream::Source {
 public:
  Other(const std::string& path, const std::string& expected)
      : Source(path, expected), handle_(archive_read_new(), archive_read_free) {
    LRA_CHECK(handle_ != nullptr);
    archive_read_support_filter_bzip2(handle_.get());
    archive_read_support_filter_xz(handle_.get());
    archive_read_support_format_raw(handle_.get());
    archive_read_support_format_empty(handle_.get());
    archive_entry* entry = nullptr;
    if (archive_read_open_fd(handle_.get(), file_.descriptor(), kBlockBytes) != ARCHIVE_OK) {
      fail();
    }
    const int status = archive_read_next_header(handle_.get(), &entry);
    is_empty_ = status == ARCHIVE_EOF;
    if (status < ARCHIVE_WARN) fail();
  }
  size_t read(std::span<char> to) override {
    if (is_empty_) return 0;
    const la_ssize_t count = archive_read_data(handle_.get(), to.data(), to.size());
    if (count < 0) fail();
    return static_cast<size_t>(count);
  }

 private:
  [[noreturn]] void fail() const {
    const int problem = archive_errno(handle_.get());  // those of a format are EILSEQ and EINVAL
    if (problem > 0 && problem != EILSEQ && problem != EINVAL && problem != ENOMEM)
      throw io_error(path_, "cannot be read", problem);
    const char* reason = archive_error_string(handle_.get());
    Source::fail(std::string("is damaged (") + (reason ? reason : "no reason given") + ")");
  }

  std::unique_ptr<archive, int (*)(archive*)> handle_;
  bool is_empty_ = false;
};

std::unique_ptr<ArchiveStream::Source> open_source(const std::string& path,
                                                   const std::string& expected) {
  constexpr std::string_view kGzip = "\x1F\x8B\x08";  // deflate, the only method
  std::string first(kGzip.size(), ' ');
  InputFile(path, expected).read_at(0, first.data(), first.size());
  if (first == kGzip) return std::make_unique<Gzip>(path, expected);
  return std::make_unique<Other>(path, expected);
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

#include "tasks/review_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/progress.h"
#include "base/text_format.h"
#include "tasks/files.h"
#include "tasks/stopping.h"

namespace lra::tasks {
namespace {

// The official archive has 100,000 reviews and 370 MB unpacked. These bounds stop archives that
// unpack to far more than they seem to hold.
constexpr int64_t kMaxEntries = 1000000;
constexpr int64_t kMaxEntryBytes = int64_t{1} << 30;
constexpr int64_t kMaxTotalBytes = int64_t{4} << 30;
constexpr size_t kReadBlock = 1 << 18;

struct FreeArchive {
  void operator()(archive* handle) const { archive_read_free(handle); }
};

// Absolute, or climbing out of its folder.
bool is_escaping(std::string_view path) {
  if (path.starts_with('/')) return true;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return false;
}

class ReviewArchive {
 public:
  explicit ReviewArchive(const std::string& path) : path_(path), handle_(archive_read_new()) {
    LRA_CHECK(handle_ != nullptr);
    // Only what official data comes in: every further format is more code for hostile input.
    archive_read_support_filter_gzip(handle_.get());
    archive_read_support_filter_bzip2(handle_.get());
    archive_read_support_filter_xz(handle_.get());
    archive_read_support_format_tar(handle_.get());
    if (!is_file(path)) fail("no such file");
    if (archive_read_open_filename(handle_.get(), path.c_str(), kReadBlock) != ARCHIVE_OK) {
      fail("is not a tar archive" + reason());
    }
  }

  std::vector<Review> read(Progress& progress) {
    std::vector<Review> reviews;
    archive_entry* entry = nullptr;
    while (next(&entry)) {
      throw_if_stopped();
      const std::string name = name_of(entry);
      check(name, entry);
      Review review;
      if (archive_entry_filetype(entry) == AE_IFREG && parse_review_path(name, review.key)) {
        review.text = content(name, entry);
        reviews.push_back(std::move(review));
        progress.update();
      }
    }
    return reviews;
  }

 private:
  bool next(archive_entry** entry) {
    const int status = archive_read_next_header(handle_.get(), entry);
    if (status == ARCHIVE_EOF) return false;
    if (status < ARCHIVE_WARN) fail("is damaged" + reason());
    if (++num_entries_ > kMaxEntries) fail("has over " + thousands(kMaxEntries) + " entries");
    return true;
  }

  std::string name_of(archive_entry* entry) const {
    const char* name = archive_entry_pathname(entry);
    if (!name) name = archive_entry_pathname_utf8(entry);
    if (!name || !*name) fail("entry " + std::to_string(num_entries_) + " has no readable name");
    return name;
  }

  void check(const std::string& name, archive_entry* entry) {
    if (is_escaping(name)) fail("entry '" + printable(name) + "' leads out of the archive");
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry)) {
      fail("entry '" + printable(name) + "' is a link");
    }
    const auto type = archive_entry_filetype(entry);
    if (type != AE_IFREG && type != AE_IFDIR) {
      fail("entry '" + printable(name) + "' is a special file");
    }
    const int64_t size = archive_entry_size(entry);
    total_bytes_ += size;
    if (size < 0 || size > kMaxEntryBytes || total_bytes_ > kMaxTotalBytes) {
      fail("entry '" + printable(name) + "' has an absurd size, " + std::to_string(size));
    }
  }

  std::string content(const std::string& name, archive_entry* entry) {
    const auto size = static_cast<uint64_t>(archive_entry_size(entry));
    if (size > kMaxReviewBytes) {
      fail("review '" + printable(name) + "' has " + std::to_string(size) + " bytes, over 1 MiB");
    }
    std::string text(size, '\0');
    size_t filled = 0;
    while (filled < text.size()) {
      const la_ssize_t count =
          archive_read_data(handle_.get(), text.data() + filled, text.size() - filled);
      if (count < 0) fail("is damaged at '" + printable(name) + "'" + reason());
      if (count == 0) fail("ends within '" + printable(name) + "'");
      filled += static_cast<size_t>(count);
    }
    return text;
  }

  std::string reason() const {
    const char* text = archive_error_string(handle_.get());
    return text ? std::string(" (") + text + ")" : std::string();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error({.where = path_,
                 .what = what,
                 .expected = "aclImdb_v1.tar.gz or an archive like it",
                 .advice = "fetch it again"});
  }

  std::string path_;
  std::unique_ptr<archive, FreeArchive> handle_;
  int64_t num_entries_ = 0, total_bytes_ = 0;
};

}  // namespace

std::vector<Review> read_review_archive(const std::string& path, Progress& progress) {
  return ReviewArchive(path).read(progress);
}

}  // namespace lra::tasks

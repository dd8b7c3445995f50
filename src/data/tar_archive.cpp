#include "data/tar_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "base/utf8.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "data/stopping.h"

namespace lra {
namespace {

constexpr int64_t kHeaderBytes = 512;                // of each entry
constexpr int64_t kMostPadding = int64_t{64} << 20;  // behind the end; programs write some KB
constexpr size_t kMaxNameBytes = 1000;
constexpr size_t kFilesNamed = 3;  // in a message

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

bool has_control_characters(std::string_view name) {
  return std::any_of(name.begin(), name.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

la_ssize_t read_block(archive* handle, void* stream, const void** block) {
  auto& from = *static_cast<ArchiveStream*>(stream);
  const std::span<const char> bytes = from.next();
  if (from.failed()) {
    archive_set_error(handle, EIO, "the file cannot be read");
    return -1;
  }
  *block = bytes.data();
  return static_cast<la_ssize_t>(bytes.size());
}

}  // namespace

TarArchive::TarArchive(const std::string& path, const std::string& expected, const Limits& limits)
    : limits_(limits),
      path_(path),
      expected_(expected),
      stream_(path, expected),
      handle_(archive_read_new(), archive_read_free) {
  LRA_CHECK(handle_ != nullptr);
  // Only the formats of official data are enabled: every further one is more code for hostile
  // input.
  archive_read_support_format_tar(handle_.get());
  std::error_code failed;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, failed));
  if (failed) throw io_error(path, "cannot be examined", failed.value());
  max_total_bytes_ = std::min(limits_.total_bytes,
                              kFreeBytes + std::min(bytes, limits_.total_bytes) * kMaxExpansion);
  if (archive_read_open(handle_.get(), &stream_, nullptr, read_block, nullptr) != ARCHIVE_OK) {
    refuse_other_format();
  }
}

bool TarArchive::next() {
  while (next_entry()) {
    if (has_clutter(name_)) continue;
    if (is_file_ && ++num_files_ <= kFilesNamed) first_files_.push_back(name_);
    return true;
  }
  return false;
}

std::string TarArchive::contents() const {
  const size_t others = num_files_ - first_files_.size();
  return quoted_list(first_files_, kFilesNamed) +
         (others > 0 ? " and " + thousands(static_cast<int64_t>(others)) + " more" : "");
}

bool TarArchive::next_entry() {
  throw_if_stopped();
  archive_entry* entry = nullptr;
  const int status = archive_read_next_header(handle_.get(), &entry);
  if (status == ARCHIVE_EOF) {
    check_end();
    return false;
  }
  if (status < ARCHIVE_WARN && num_entries_ == 0) refuse_other_format();
  if (status < ARCHIVE_WARN) fail("is damaged" + reason());
  if (++num_entries_ > limits_.entries) fail("has over " + thousands(limits_.entries) + " entries");
  const char* name = archive_entry_pathname(entry);
  if (!name) name = archive_entry_pathname_utf8(entry);
  if (!name || !*name) fail("entry " + std::to_string(num_entries_) + " has no readable name");
  name_ = name;
  check(entry);
  return true;
}

void TarArchive::check_end() {
  const int64_t end = archive_read_header_position(handle_.get());
  while (!stream_.next().empty()) {
    throw_if_stopped();
    if (stream_.size() > end + kMostPadding) fail("continues after its end");
  }
  stream_.check();
  if (stream_.end_of_content() > end) fail("continues after its end");
  if (stream_.size() < end + kHeaderBytes) fail("is cut off: the mark of its end is missing");
}

void TarArchive::check(archive_entry* entry) {
  const std::string entry_name = "entry " + in_quotes(name_, 100);
  if (has_control_characters(name_)) fail(entry_name + " has control characters in its name");
  if (!is_utf8(name_)) {
    fail(entry_name + " has a name that is not UTF-8");
  }
  if (name_.size() > kMaxNameBytes) fail(entry_name + " has an over-long name");
  if (is_escaping(name_)) fail(entry_name + " leads out of the archive");
  if (archive_entry_hardlink(entry) || archive_entry_symlink(entry))
    fail(entry_name + " is a link");
  const auto type = archive_entry_filetype(entry);
  if (type != AE_IFREG && type != AE_IFDIR) fail(entry_name + " is a special file");
  is_file_ = type == AE_IFREG;
  size_ = archive_entry_size(entry);
  if (size_ < 0 || size_ > limits_.entry_bytes) {
    fail(entry_name + " has an absurd size, " + std::to_string(size_));
  }
  if (archive_entry_sparse_count(entry) > 0) fail(entry_name + " has holes");
  total_bytes_ += kHeaderBytes + size_;
  if (total_bytes_ > max_total_bytes_) {
    fail("unpacks to over " + thousands(max_total_bytes_) + " bytes, too much for its size");
  }
}

std::string TarArchive::content(uint64_t max_bytes) {
  const std::string entry_name = in_quotes(name_, 100);
  if (static_cast<uint64_t>(size_) > max_bytes) {
    fail(entry_name + " has " + std::to_string(size_) + " bytes, over " +
         std::to_string(max_bytes >> 20) + " MiB");
  }
  std::string bytes(static_cast<size_t>(size_), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const la_ssize_t count =
        archive_read_data(handle_.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0) fail("is damaged at " + entry_name + reason());
    if (count == 0) fail("ends within " + entry_name);
    filled += static_cast<size_t>(count);
  }
  return bytes;
}

void TarArchive::write_to(const std::string& path) {
  NewFile file(path);
  for (;;) {
    throw_if_stopped();
    const void* data = nullptr;
    size_t count = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(handle_.get(), &data, &count, &offset);
    if (status == ARCHIVE_EOF) break;
    if (status < ARCHIVE_WARN) fail("is damaged at " + in_quotes(name_, 100) + reason());
    if (static_cast<uint64_t>(offset) != file.size()) fail(in_quotes(name_, 100) + " has holes");
    file.append({static_cast<const std::byte*>(data), count});
  }
  if (file.size() != static_cast<uint64_t>(size_)) fail("ends within " + in_quotes(name_, 100));
}

std::string TarArchive::reason() const {
  const char* text = archive_error_string(handle_.get());
  return text ? std::string(" (") + text + ")" : std::string();
}

void TarArchive::refuse_other_format() const {
  stream_.check();
  throw Error({.where = path_,
               .what = "is not a tar archive" + reason(),
               .expected = expected_,
               .advice = "unpack an archive of another kind, and give its folder"});
}

void TarArchive::fail(const std::string& what) const {
  stream_.check();  // what was wrong first
  throw Error(
      {.where = path_, .what = what, .expected = expected_, .advice = "get a complete copy"});
}

}  // namespace lra

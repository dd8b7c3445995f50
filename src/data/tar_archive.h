// Reads a tar archive (plain, gz, bz2 or xz) entry by entry, with libarchive, in memory: nothing is
// unpacked to disk, so no name in an archive can harm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/archive_stream.h"

struct archive;
struct archive_entry;

namespace lra {

// Throws an lra::Error that names the archive if it is not an archive, is damaged, has links,
// special files or files with holes, absolute names, names with ".." or control characters, names
// that are over-long or not UTF-8, or absurd sizes; when a checksum of the packing is wrong, or the
// end of the archive is not marked, or something follows it. Sizes are judged by what headers say,
// before anything is unpacked.
class TarArchive {
 public:
  // Bounds that stop archives which unpack to far more than they seem to hold. By default somewhat
  // above the largest archive of one task: 100,000 entries and 370 MB. Official archives unpack to
  // at most 10 times their size; kMaxExpansion times, and some for small ones, is a bomb.
  static constexpr int64_t kMaxExpansion = 100, kFreeBytes = int64_t{64} << 20;
  struct Limits {
    int64_t entries = 200000;
    int64_t entry_bytes = int64_t{1} << 30;
    int64_t total_bytes = int64_t{4} << 30;
  };

  // `expected` names the kind of archive in messages.
  TarArchive(const std::string& path, const std::string& expected)
      : TarArchive(path, expected, Limits{}) {}
  TarArchive(const std::string& path, const std::string& expected, const Limits& limits);
  TarArchive(const TarArchive&) = delete;
  TarArchive& operator=(const TarArchive&) = delete;

  // Goes to the next entry that is not clutter (files.h); false at the end, once all of the file
  // was seen. Throws when a stop was requested.
  bool next();
  const std::string& name() const { return name_; }  // of the entry
  bool is_file() const { return is_file_; }
  // The first files so far, for messages: "'a/b', 'a/c' and 17 more", or "nothing".
  std::string contents() const;
  // The bytes of the entry, once per entry. Throws when there are over `max_bytes`, which is a
  // multiple of 1 MiB.
  std::string content(uint64_t max_bytes);
  // Writes the entry to a new file of a folder that the caller flushes (NewFile), once per entry,
  // without holding it in memory.
  void write_to(const std::string& path);

 private:
  bool next_entry();
  void check(archive_entry* entry);
  void check_end();
  std::string reason() const;
  [[noreturn]] void refuse_other_format() const;
  [[noreturn]] void fail(const std::string& what) const;

  const Limits limits_;
  std::string path_, expected_, name_;
  ArchiveStream stream_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
  bool is_file_ = false;
  std::vector<std::string> first_files_;
  size_t num_files_ = 0;
  int64_t size_ = 0, num_entries_ = 0, total_bytes_ = 0, max_total_bytes_ = 0;
};

}  // namespace lra

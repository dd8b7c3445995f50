// Writes tar archives for tests, hostile ones too.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace lra {

struct ArchiveItem {
  std::string name = "", content = "";
  mode_t type = AE_IFREG;
  std::string link = "";  // target of a symbolic or hard link
  bool hard = false;
};

// A gzipped tar archive with these entries, as hostile as they are.
inline void write_test_archive(const std::string& path, const std::vector<ArchiveItem>& items) {
  archive* handle = archive_write_new();
  archive_write_add_filter_gzip(handle);
  archive_write_set_format_pax_restricted(handle);
  LRA_CHECK_EQ(archive_write_open_filename(handle, path.c_str()), ARCHIVE_OK);
  for (const ArchiveItem& item : items) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, item.name.c_str());
    archive_entry_set_filetype(entry, item.type);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<int64_t>(item.content.size()));
    if (!item.link.empty()) {
      (item.hard ? archive_entry_set_hardlink : archive_entry_set_symlink)(entry,
                                                                           item.link.c_str());
      archive_entry_set_size(entry, 0);
    }
    archive_write_header(handle, entry);
    archive_write_data(handle, item.content.data(), item.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(handle);
  archive_write_free(handle);
}

}  // namespace lra

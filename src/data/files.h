// Queries about paths. They answer no, rather than throwing, for paths that cannot be
// examined: whoever opens the file afterwards reports why.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace lra {

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

inline bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// Anything at all, a dangling link included.
inline bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

// True if `name`, without folders, is one that operating systems and file managers leave among
// data: hidden files (".DS_Store", "._a.png"), "desktop.ini", "Thumbs.db", "__MACOSX". Readers of
// folders and archives skip them.
bool is_clutter(std::string_view name);

// True if any part of a path in an archive is clutter.
bool has_clutter(std::string_view path);

// The names in a folder in alphabetical order, without clutter; none when there is no such folder.
// Throws with exit code 74.
std::vector<std::string> data_names_in(const std::string& folder);

// True if a file name has the ending, as ".png", in any case: cameras and old file systems write
// ".PNG".
bool has_ending(const std::filesystem::path& path, std::string_view ending);

// Bytes of all files together; whoever reads those that cannot be examined says why.
uint64_t size_of_files(std::span<const std::string> paths);

// A set of files that belong together, and the folders below a root where they may lie, best first;
// "." is the root itself.
struct FileSet {
  std::string title;  // "the official ListOps files"
  std::vector<std::string> folders, files;
};

// The paths of the set in the first folder that has all of its files, in the order of `files`;
// empty when no folder has any of them. Throws an lra::Error that names the missing and the found
// files if some exist but no folder has all.
std::vector<std::string> find_file_set(const std::string& root, const FileSet& set);

}  // namespace lra

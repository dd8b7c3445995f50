// What is under a path? Says no, rather than throwing, for paths that cannot be looked at: whoever
// opens the file afterwards reports why.
#pragma once

#include <filesystem>
#include <system_error>

namespace lra::tasks {

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

}  // namespace lra::tasks

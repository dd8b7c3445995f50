// Fixtures of tests that read and write data: temporary folders, a silent progress.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.h"
#include "data/manifest.h"
#include "io/progress.h"

namespace lra {

// Removed at the end of the test.
class TestFolder {
 public:
  TestFolder() : root_(std::filesystem::temp_directory_path() / "lra-test-XXXXXX") {
    if (!::mkdtemp(root_.data())) throw io_error(root_, "cannot make a folder", errno);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return root_ + "/" + name; }

 private:
  std::string root_;
};

class QuietProgress : public Progress {
 public:
  QuietProgress() : Progress(options()) {}

 private:
  static ProgressOptions options() {
    ProgressOptions options;
    options.quiet = true;
    return options;
  }
};

// The message of the lra::Error that `action` throws; empty when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The manifest of a small data set that counts as imported.
inline Manifest imported_manifest(const std::string& task) {
  Manifest manifest;
  manifest.task = task;
  manifest.source = "imported";
  manifest.source_hash = "none";
  return manifest;
}

inline void write_text(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace lra

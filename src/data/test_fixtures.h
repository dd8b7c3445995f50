// Fixtures of tests that read and write data: temporary folders, a silent progress.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/scratch_folder.h"
#include "data/manifest.h"
#include "io/progress.h"

namespace lra {

// Removed at the end of the test.
class TestFolder {
 public:
  std::string path(const std::string& name) const { return scratch_.file(name); }

 private:
  const ScratchFolder scratch_;
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

// The manifest of a small data set that counts as imported.
inline Manifest imported_manifest(const std::string& task) {
  Manifest manifest;
  manifest.task = task;
  manifest.source = "imported";
  manifest.source_hash = "none";
  return manifest;
}

// The manifest to write a changed copy of a dataset under.
inline Manifest without_files(Manifest manifest) {
  manifest.splits.clear();
  manifest.side_files.clear();
  return manifest;
}

inline void write_text(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace lra

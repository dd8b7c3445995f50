// Fixtures of the tests of this room: temporary folders, a silent progress, small official data.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/rng.h"
#include "io/progress.h"
#include "tasks/manifest.h"
#include "tasks/text/review_names.h"

namespace lra::tasks {

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

// A folder aclImdb below `root` with `count` reviews per split and label, in which good reviews
// have more letters 'g' and bad ones more letters 'b'. Ratings and numbers are as odd as the real
// ones.
inline void write_small_imdb(const std::string& root, int64_t count) {
  RandomStream random(5);
  for (int split = 0; split < 2; ++split) {
    for (int label = 0; label < 2; ++label) {
      for (int64_t i = 0; i < count; ++i) {
        const ReviewKey key{
            .split = split, .label = label, .id = 3 * i, .rating = (label == 1 ? 7 : 1) + i % 4};
        std::string text = "Review \xC3\xA9" + std::to_string(random.next_u32()) + " ";
        const uint32_t num_words = 3 + random.below(60);
        for (uint32_t k = 0; k < num_words; ++k) {
          const bool usual = random.below(4) != 0;
          text += (usual == (label == 1)) ? "good " : "bad ";
        }
        write_text(root + "/aclImdb/" + review_path(key), text);
      }
    }
  }
}

}  // namespace lra::tasks

// A temporary folder for tests, removed at the end of the test.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace lra::tasks {

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

}  // namespace lra::tasks

// Own data of a test: written as files, imported and opened.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/test_fixtures.h"
#include "io/toml.h"
#include "tasks/all.h"
#include "tasks/prepare_data.h"

namespace lra::tasks {

// Imports files into root/own and opens what was written.
class OwnData : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    write_text(root_.path(name), content);
    return root_.path(name);
  }
  Dataset imported(const std::vector<std::string>& sources, const std::string& settings = "") {
    QuietProgress progress;
    std::filesystem::remove_all(root_.path("own"));
    import_data(*kCustomTask.make(parse_toml(settings, "test")), sources, root_.path("own"),
                progress);
    task_ = kCustomTask.make(task_on_data("custom", root_.path("own")).settings);
    return open_dataset(kCustomTask, *task_, root_.path("own"));
  }
  std::string refused(const std::string& name, const std::string& content,
                      const std::string& settings = "") {
    return error_of([&] { imported({file(name, content)}, settings); });
  }
  // Findings of the checks of the import, one in each line.
  static std::string found_in(const Dataset& data) {
    std::string found;
    for (const CheckFinding& finding : data.manifest().data_checks.value()) {
      found += checks::text_of(finding) + "\n";
    }
    return found;
  }
  std::string found_in(const std::string& name, const std::string& content,
                       const std::string& settings = "") {
    return found_in(imported({file(name, content)}, settings));
  }
  std::string read(const Dataset& data, const std::string& what) {
    return data.manifest().settings.at("read_" + what);
  }
  std::vector<int32_t> tokens(const Split& split, int64_t example, int64_t tower = 0) {
    return split.all_tokens(example, tower);
  }

  TestFolder root_;
  std::unique_ptr<Task> task_;
};

// `count` rows, of which `row` makes each.
inline std::string rows_of(int count, const std::function<std::string(int)>& row) {
  std::string rows;
  for (int i = 0; i < count; ++i) rows += row(i) + "\n";
  return rows;
}

inline std::string text_row(int i) {
  return R"({"text": "example )" + std::to_string(i) + R"(", "label": ")" + (i % 2 ? "yes" : "no") +
         "\"}";
}

}  // namespace lra::tasks

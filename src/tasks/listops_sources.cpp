#include "tasks/listops_sources.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "tasks/files.h"
#include "tasks/listops_tsv.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kSplitNames = {"train", "val", "test"};

void refuse_part_of_the_files(const std::string& root) {
  for (const char* folder :
       {"listops-1000", "lra_release/listops-1000", "lra_release/lra_release/listops-1000"}) {
    for (const char* split : kSplitNames) {
      const fs::path file = fs::path(root) / folder / ("basic_" + std::string(split) + ".tsv");
      if (!is_there(file)) continue;
      throw Error({.where = file.parent_path().string(),
                   .what = "holds some of the official ListOps files, not all",
                   .expected = "basic_train.tsv, basic_val.tsv and basic_test.tsv",
                   .advice = "complete or rename the folder"});
    }
  }
}

}  // namespace

std::array<std::string, 3> listops_source_files(const std::vector<std::string>& sources) {
  if (sources.size() == 1 && is_folder(sources[0])) {
    std::array<std::string, 3> files = find_listops_files(sources[0]);
    if (!files[0].empty()) return files;
  } else if (sources.size() == 3) {
    std::array<std::string, 3> files;
    for (const std::string& source : sources) {
      const std::string name = fs::path(source).filename().string();
      for (size_t i = 0; i < files.size(); ++i) {
        if (name.ends_with(std::string("_") + kSplitNames[i] + ".tsv")) files[i] = source;
      }
    }
    if (std::none_of(files.begin(), files.end(), [](const auto& f) { return f.empty(); })) {
      return files;
    }
  }
  std::string given;
  for (const std::string& source : sources) given += (given.empty() ? "" : " ") + source;
  throw Error({.where = given,
               .what = "no official ListOps files",
               .expected = "a folder with listops-1000/basic_{train,val,test}.tsv or these three",
               .advice = "lra data make listops generates the data"});
}

std::vector<std::string> find_listops_sources(const std::string& root) {
  const std::array<std::string, 3> files = find_listops_files(root);
  if (files[0].empty()) {
    refuse_part_of_the_files(root);
    return {};
  }
  return {files.begin(), files.end()};
}

}  // namespace lra::tasks

#include "tasks/listops/sources.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/manifest.h"

namespace lra::tasks {
namespace {

// The three files that were named one by one, in the order of the splits; an empty path for a split
// that none of the names fits.
std::array<std::string, 3> named_files(const std::vector<std::string>& sources) {
  std::array<std::string, 3> files;
  for (const std::string& source : sources) {
    const std::string name = std::filesystem::path(source).filename().string();
    for (size_t i = 0; i < files.size(); ++i) {
      if (name.ends_with(std::string("_") + kSplitNames[i] + ".tsv")) files[i] = source;
    }
  }
  return files;
}

}  // namespace

std::array<std::string, 3> listops_source_files(const std::vector<std::string>& sources) {
  std::string found;
  if (sources.size() == 1 && is_folder(sources[0])) {
    const std::vector<std::string> files = find_listops_files(sources[0]);
    if (!files.empty()) return {files[0], files[1], files[2]};
    found = "the folder holds " + quoted_list(data_names_in(sources[0]));
  } else {
    const std::array<std::string, 3> files = named_files(sources);
    if (sources.size() == 3 && std::ranges::none_of(files, &std::string::empty)) return files;
    found = "given " + quoted_list(sources);
  }
  throw Error({.where = sources[0],
               .what = "no official ListOps files; " + found,
               .expected =
                   "a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv, or one "
                   "above it, or these three files",
               .advice = "'lra data make listops --out FOLDER' generates the data"});
}

std::vector<std::string> find_listops_files(const std::string& root) {
  return find_file_set(root, {.title = "the official ListOps files",
                              .folders = {".", "listops-1000", "lra_release/listops-1000",
                                          "lra_release/lra_release/listops-1000"},
                              .files = {"basic_train.tsv", "basic_val.tsv", "basic_test.tsv"}});
}

}  // namespace lra::tasks

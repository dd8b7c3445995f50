#include "training/prepare_data.h"

#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/progress.h"
#include "tasks/all.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

bool is_prepared(const std::string& folder) { return fs::exists(folder + "/manifest.json"); }

std::string prepared_folder(const tasks::TaskSpec& spec, const std::string& root) {
  return is_prepared(root) ? root : root + "/" + std::string(spec.name);
}

}  // namespace

std::string data_root(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("LRA_DATA");
  return named && *named ? named : "data";
}

bool data_available(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root) {
  return is_prepared(prepared_folder(spec, root)) || task.can_generate() ||
         !task.find_sources(root).empty();
}

tasks::Dataset prepare_data(const tasks::TaskSpec& spec, const tasks::Task& task,
                            const std::string& root, bool quiet) {
  const std::string folder = prepared_folder(spec, root), name(spec.name);
  if (!is_prepared(folder)) {
    const auto sources = task.find_sources(root);
    Progress progress({.description = sources.empty() ? "make " + name : "import " + name,
                       .total = 0,
                       .unit = "ex",
                       .unit_scale = true,
                       .quiet = quiet});
    if (!sources.empty()) {
      make_folder(root);
      task.import(sources, folder, progress);
    } else if (task.can_generate()) {
      make_folder(root);
      task.make({.out = folder, .seed = 0, .num_train = {}, .num_val = {}, .num_test = {}},
                progress);
    } else {
      throw Error({.where = root,
                   .what = "there is no data for " + name,
                   .expected = folder + " as 'lra data import " + name + "' writes it",
                   .advice = "import a copy with 'lra data import " + name + " FROM --out " +
                             folder + "', or name the data folder with --data or LRA_DATA"});
    }
    progress.finish();
  }
  return tasks::open_dataset(spec, task, folder);
}

}  // namespace lra::training

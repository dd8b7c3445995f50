#include "tasks/data_doubts.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/quoted.h"
#include "tasks/all.h"
#include "tasks/files.h"
#include "tasks/prepare_data.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

// True if `name` is that of the task's prepared data, or of its unfinished remains.
bool belongs_to(const TaskSpec& spec, std::string_view name) {
  if (!name.starts_with(spec.name)) return false;
  name.remove_prefix(spec.name.size());
  return name.empty() || name.starts_with(".prepared") || name.starts_with(".lra.");
}

// Names under which official data of any task lies in a data root.
constexpr std::array<std::string_view, 15> kOfficialNames = {"aclImdb",
                                                             "aclImdb_v1.tar.gz",
                                                             "aclImdb_labeled.tar.gz",
                                                             "aan",
                                                             "cifar10",
                                                             "cifar-10-batches-bin",
                                                             "cifar-10-batches-py",
                                                             "listops-1000",
                                                             "pathfinder32",
                                                             "cifar-10-binary.tar.gz",
                                                             "cifar-10-python.tar.gz",
                                                             "lra_release",
                                                             "pathfinder128",
                                                             "pathfinder256",
                                                             "tsv_data"};

// What lies in a data root and is not known to be the data of a task: it may have been meant as the
// data of this one.
std::vector<std::string> names_like_data(const TaskSpec& spec, const std::string& root) {
  std::vector<std::string> names = data_names_in(root);
  std::erase_if(names, [&](const std::string& name) {
    if (spec.remote && name == spec.remote->file) return false;
    return std::ranges::any_of(all_tasks(), [&](const TaskSpec* task) {
      return belongs_to(*task, name) ||
             std::ranges::find(kOfficialNames, name) != kOfficialNames.end();
    });
  });
  return names;
}

// A sentence when a source is newer than what was prepared.
std::vector<std::string> newer_sources(const std::vector<std::string>& sources,
                                       const std::string& prepared) {
  std::error_code failed;
  const auto when = fs::last_write_time(prepared + "/" + kManifestFile, failed);
  for (const std::string& source : sources) {
    const auto changed = fs::last_write_time(source, failed);
    if (failed || changed <= when) continue;
    return {source + " was changed after " + prepared +
            " was made of it: move the prepared data away to read it again"};
  }
  return {};
}

}  // namespace

std::vector<std::string> data_doubts(const TaskSpec& spec, const Task& task,
                                     const std::string& root, const Dataset& dataset) {
  if (dataset.folder() == root) return {};  // named itself
  try {
    const auto sources = sources_under(spec, task, root);
    if (dataset.manifest().source != "generated") return newer_sources(sources, dataset.folder());
    if (!sources.empty()) {
      return {"the data in " + dataset.folder() + " is generated, and official files lie in " +
              sources[0] + ": move the generated data away to use them"};
    }
  } catch (const Error& error) {
    return {"the data in " + dataset.folder() +
            " is not read from official files: " + error.what()};
  }
  std::vector<std::string> names = names_like_data(spec, root);
  const std::string own = root + "/" + std::string(spec.name);
  if (dataset.folder() != own && is_there(own)) names.push_back(std::string(spec.name));
  if (names.empty()) return {};
  return {"the data is generated; " + root + " also holds " + quoted_list(names) +
          ", which was not read"};
}

}  // namespace lra::tasks

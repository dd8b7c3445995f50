#include "tasks/data_origin.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/quoted.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "tasks/all.h"
#include "tasks/prepare_data.h"

namespace lra::tasks {
namespace {

// True if `name` is that of the task's prepared data, or of its unfinished remains.
bool belongs_to(const TaskSpec& spec, std::string_view name) {
  if (!name.starts_with(spec.name)) return false;
  name.remove_prefix(spec.name.size());
  return name.empty() || name.starts_with(".prepared") || name.starts_with(".lra.");
}

// Names of official data of any task in a data root.
constexpr std::string_view kOfficialNames[] = {"aclImdb",
                                               "aclImdb_v1.tar.gz",
                                               "aclImdb_labeled.tar.gz",
                                               "aan",
                                               "cifar10",
                                               "cifar-10-batches-bin",
                                               "cifar-10-batches-py",
                                               "listops-1000",
                                               "pathfinder32",
                                               "lra_release",
                                               "cifar-10-binary.tar.gz",
                                               "cifar-10-python.tar.gz",
                                               "pathfinder128",
                                               "pathfinder256",
                                               "tsv_data"};

// Prepared data that says which other task it is for, as a user's own does.
bool is_prepared_for_another(const TaskSpec& spec, const std::string& folder) {
  const std::string file = folder + "/" + kManifestFile;
  if (!is_there(file)) return false;
  try {
    return parse_manifest(read_file(file, kMaxManifestBytes), file).task != spec.name;
  } catch (const Error&) {
    return false;
  }
}

// Names in a data root that are not known to be the data of any task, and may have been meant as
// the data of this one.
std::vector<std::string> names_like_data(const TaskSpec& spec, const std::string& root) {
  std::vector<std::string> names = data_names_in(root);
  std::erase_if(names, [&](const std::string& name) {
    if (spec.remote && name == spec.remote->file) return false;
    if (is_prepared_for_another(spec, root + "/" + name)) return true;
    return std::ranges::any_of(all_tasks(), [&](const TaskSpec* task) {
      return belongs_to(*task, name) ||
             std::ranges::find(kOfficialNames, name) != std::end(kOfficialNames);
    });
  });
  return names;
}

// Files of copies that may lie in the data root itself, among files of anything.
bool is_official_file(std::string_view name) {
  return name.starts_with("new_aan_pairs.") || name.starts_with("data_batch_") ||
         name.starts_with("test_batch");
}

// The files of a source as far as their number is small, and the folders in which there are many.
std::vector<std::string> parts_of(const std::string& source, const std::string& root) {
  if (!is_folder(source)) return {source};
  std::vector<std::string> parts;
  for (const std::string& name : data_names_in(source)) {
    const std::string path = source + "/" + name;
    if (!is_folder(path)) {
      if (source != root || is_official_file(name)) parts.push_back(path);
    } else if (source != root) {
      parts.push_back(path);
      for (const std::string& inner : data_names_in(path)) {
        if (is_folder(path + "/" + inner)) parts.push_back(path + "/" + inner);
      }
    }
  }
  return parts;
}

// Returns a sentence if a source was written after the prepared data.
std::vector<std::string> newer_sources(const std::vector<std::string>& sources,
                                       const std::string& root, const std::string& prepared) {
  std::error_code ignored;  // the earliest time then
  const auto made = std::filesystem::last_write_time(prepared + "/" + kManifestFile, ignored);
  for (const std::string& source : sources) {
    for (const std::string& part : parts_of(source, root)) {
      if (std::filesystem::last_write_time(part, ignored) <= made) continue;
      return {part + " was changed after " + prepared +
              " was made: move the prepared data away to read it again"};
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> origin_warnings(const TaskSpec& spec, const Task& task,
                                         const std::string& root, const Dataset& dataset) {
  if (dataset.folder() == root) return {};  // named itself
  try {
    const std::vector<std::string> sources = sources_under(spec, task, root);
    if (dataset.manifest().source != "generated") {
      return newer_sources(sources, root, dataset.folder());
    }
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

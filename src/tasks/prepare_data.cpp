#include "tasks/prepare_data.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/command_text.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "data/stopping.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/data_checks.h"

namespace lra::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPreparedEnding = ".prepared";

bool is_prepared(const std::string& folder) { return is_there(folder + "/" + kManifestFile); }

std::string own_folder(const TaskSpec& spec, const Task& task, const std::string& root) {
  const std::string name = task.data_name();
  return root + "/" + (name.empty() ? std::string(spec.name) : name);
}

// The root itself, root/TASK, or root/TASK.prepared where raw files lie under the task's name.
std::string prepared_folder(const TaskSpec& spec, const Task& task, const std::string& root) {
  if (is_prepared(root)) return root;
  const std::string own = own_folder(spec, task, root), beside = own + kPreparedEnding;
  if (is_prepared(own)) return own;
  return is_prepared(beside) || is_there(own) ? beside : own;
}

// Says once that another process is at it, and stops when asked to.
std::function<void()> patience(const std::string& folder, bool quiet) {
  return [folder, quiet, told = false]() mutable {
    throw_if_stopped();
    if (!quiet && !told) {
      std::fprintf(stderr, "waiting for another process that prepares %s\n",
                   printable(folder).c_str());
    }
    told = true;
  };
}

// Refuses a prepared folder without its manifest: preparing it again next to itself would hide what
// happened to it.
void refuse_without_manifest(const std::string& folder) {
  if (!is_folder(folder)) return;
  for (const std::string& name : data_names_in(folder)) {
    // Another process may have put the whole folder there just now.
    if (!name.ends_with(".shard") || is_prepared(folder)) continue;
    throw Error({.where = folder,
                 .what = "holds " + in_quotes(name) + " and no " + kManifestFile,
                 .expected = "a folder that 'lra data make' or 'lra data import' wrote",
                 .advice = "restore the manifest, or move the folder away"});
  }
}

// A folder with a part of one holds none.
bool holds_copy(const Task& task, const std::string& folder) {
  try {
    return !task.find_sources(folder).empty();
  } catch (const Error&) {
    return false;
  }
}

// Refuses other contents under the task's name, which may be the intended data: generated data
// would hide that it was not read.
void refuse_other_contents(const TaskSpec& spec, const std::string& folder) {
  const bool is_other = is_there(folder) && !is_folder(folder);
  const std::vector<std::string> names =
      is_other ? std::vector<std::string>() : data_names_in(folder);
  if (names.empty() && !is_other) return;
  throw Error({.where = folder,
               .what = is_other ? "is not a folder"
                                : "holds " + quoted_list(names) + ", but no data of " +
                                      std::string(spec.name) + " that can be read",
               .expected = "official files, as '" + command_text({"help", std::string(spec.name)}) +
                           "' describes them, or prepared ones",
               .advice = "to train on generated data, move it away or name another folder with "
                         "--data"});
}

// `sources` empty: the examples are generated.
void prepare(const TaskSpec& spec, const Task& task, const std::string& folder,
             const std::vector<std::string>& sources, bool quiet) {
  const std::string name(spec.name);
  Progress progress({.description = sources.empty() ? "make " + name : "import " + name,
                     .total = 0,
                     .unit = "ex",
                     .unit_scale = true,
                     .quiet = quiet});
  if (sources.empty()) {
    task.make({.out = folder}, progress);
  } else {
    import_data(task, sources, folder, progress);
  }
  progress.finish();
}

// Processes that start at once on one data root: the first prepares, the others wait and use what
// it made. When it fails, the next one tries.
void prepare_in_turn(const TaskSpec& spec, const Task& task, const std::string& folder,
                     const std::vector<std::string>& sources, bool quiet) {
  const FileLock turn(folder + ".turn", patience(folder, quiet));
  if (is_prepared(folder)) return;
  // `lra data make` and `lra data import` do not take turns, but lock what they write.
  { const FileLock writer(lock_of(folder), patience(folder, quiet)); }
  if (!is_prepared(folder)) prepare(spec, task, folder, sources, quiet);
}

// Refuses a data folder that is shared read-only, where the prepared files would go.
void refuse_read_only(const TaskSpec& spec, const std::string& root,
                      const std::vector<std::string>& sources) {
  if (::access(root.c_str(), W_OK) == 0) return;
  const std::string name(spec.name);
  std::vector<std::string> import = {"data", "import", name};
  import.insert(import.end(), sources.begin(), sources.end());
  import.insert(import.end(), {"--out", "data/" + name});
  throw Error({.where = root,
               .what = "cannot be written to, and the prepared data would go there",
               .expected = "a folder of your own",
               .advice = sources.empty() ? "choose another one with --data"
                                         : "import the files with: " + command_text(import) +
                                               ", and choose it with --data data"});
}

// Empty for a folder that may not be read: its content cannot have been meant.
std::vector<std::string> names_if_readable(const std::string& folder) {
  try {
    return data_names_in(folder);
  } catch (const Error&) {
    return {};
  }
}

// Adds the folders below `folder` that hold a copy, down to `depth` levels.
void find_below(const Task& task, const std::string& folder, int depth, int& num_looked_into,
                std::vector<std::string>& found) {
  constexpr int kMaxFolders = 500;
  if (depth == 0) return;
  for (const std::string& name : names_if_readable(folder)) {
    const std::string below = folder + "/" + name;
    if (!is_folder(below) || is_prepared(below)) continue;
    if (++num_looked_into > kMaxFolders) return;
    if (holds_copy(task, below)) {
      found.push_back(below);
    } else {
      find_below(task, below, depth - 1, num_looked_into, found);
    }
  }
}

// Refuses a `root` without data below which official files lie: they may have been meant, and are
// not replaced by generated data.
void refuse_deeper_files(const Task& task, const std::string& root) {
  constexpr int kLevelsBelow = 3;
  std::vector<std::string> found;
  int num_looked_into = 0;
  find_below(task, root, kLevelsBelow, num_looked_into, found);
  if (found.empty()) return;
  throw Error({.where = root,
               .what = "official files are deeper, in " + quoted_list(found, 4),
               .expected = "the data folder itself",
               .advice = "name it with --data " + shell_word(found[0])});
}

// The data set of a user's own that a task names is not there.
[[noreturn]] void refuse_missing_own(const TaskSpec& spec, const std::string& data_name,
                                     const std::string& root, const std::string& folder) {
  const std::vector<std::string> known = own_data_names(spec, root);
  const std::string name = std::string(spec.name) + ":" + data_name;
  const std::string near = nearest_name(name, known);
  throw Error({.where = root,
               .what = "there is no data set " + in_quotes(name),
               .expected = known.empty() ? "" : "one of " + quoted_list(known, 8),
               .advice = near.empty() ? "import it with: " +
                                            command_text({"data", "import", std::string(spec.name),
                                                          "FILE", "--out", folder})
                                      : "did you mean " + in_quotes(near) + "?"});
}

[[noreturn]] void refuse_missing(const TaskSpec& spec, const std::string& root,
                                 const std::string& folder) {
  const std::string name(spec.name);
  const std::string found = is_folder(root)
                                ? " in this folder, which holds " + quoted_list(data_names_in(root))
                                : ": there is no such folder";
  throw Error({.where = root,
               .what = "no data for " + name + found,
               .expected = std::string(spec.sources),
               .advice = "put it there, or name the data folder with --data or LRA_DATA; a copy is "
                         "imported by " +
                         command_text({"data", "import", name, "COPY", "--out", folder})});
}

// A mistyped folder is not filled with generated data.
void refuse_new_root(const TaskSpec& spec, const std::string& root, const std::string& folder) {
  const auto absolute = [](const std::string& path) {
    return fs::absolute(path).lexically_normal();
  };
  if (is_folder(root) || absolute(root) == absolute(default_data_root())) return;
  const std::string name(spec.name);
  throw Error({.where = root,
               .what = "there is no such folder",
               .expected = "the data folder",
               .advice = "to generate data there: " +
                         command_text({"data", "make", name, "--out", folder})});
}

}  // namespace

std::string default_data_root() {
  const char* variable = std::getenv("LRA_DATA");
  return variable && *variable ? variable : "data";
}

void import_data(const Task& task, const std::vector<std::string>& sources, const std::string& out,
                 Progress& progress, const std::vector<std::string>& accepted) {
  checks::refuse_unknown_checks(accepted);
  ImportedData imported = task.import(sources, out, progress);
  const Dataset dataset = Dataset::open(imported.writer.partial_folder(), /*verify=*/false);
  const TaskSpec& spec = find_task(dataset.manifest().task);
  // A task whose shape is that of its data knows it only now.
  const auto on_data = spec.settings_of ? spec.make(spec.settings_of(dataset.manifest())) : nullptr;
  store_checks(on_data ? *on_data : task, dataset, std::move(imported.groups), accepted);
  imported.writer.publish();
}

std::vector<std::string> sources_under(const TaskSpec& spec, const Task& task,
                                       const std::string& root) {
  auto sources = task.find_sources(root);
  const std::string own = own_folder(spec, task, root);
  // Side files of prepared data are named as official ones are.
  return !sources.empty() || is_prepared(own) ? sources : task.find_sources(own);
}

bool data_found(const TaskSpec& spec, const Task& task, const std::string& root) {
  return is_prepared(prepared_folder(spec, task, root)) || !sources_under(spec, task, root).empty();
}

bool data_available(const TaskSpec& spec, const Task& task, const std::string& root) {
  return task.can_generate() || data_found(spec, task, root);
}

std::vector<std::string> own_data_names(const TaskSpec& spec, const std::string& root) {
  std::vector<std::string> found;
  for (const std::string& name : names_if_readable(root)) {
    const std::string folder = root + "/" + name;
    if (!is_plain_file_name(name) || !is_prepared(folder)) continue;
    try {
      const Dataset dataset = Dataset::open(folder, /*verify=*/false);
      if (dataset.manifest().task == spec.name) {
        found.push_back(std::string(spec.name) + ":" + name);
      }
    } catch (const Error&) {  // whoever opens it is told what is wrong
    }
  }
  return found;
}

TaskOnData task_on_data(const std::string& task, const std::string& root) {
  const TaskSpec& spec = find_task(task);
  if (!spec.settings_of) return {.name = task, .settings = {}};
  const std::string spec_name(spec.name);
  const bool is_root = is_prepared(root);
  std::string given(data_name_of(task));
  // The data of every task may lie under its name.
  if (given.empty() && !is_root && is_prepared(root + "/" + spec_name)) given = spec_name;
  if (given.empty() && !is_root) {
    throw Error({.where = root,
                 .what = "is not a prepared dataset, and " + spec_name + " names none",
                 .expected = "--data with the folder that 'lra data import " + spec_name +
                             "' wrote, or the task " + spec_name + ":NAME; this folder has " +
                             quoted_list(own_data_names(spec, root), 8)});
  }
  const std::string folder = is_root ? root : root + "/" + given;
  const std::string own = (fs::absolute(folder) / "").lexically_normal().parent_path().filename();
  const std::string name = given.empty() ? own : given;
  if (is_root && name != own) {
    throw Error({.where = root,
                 .what = "is the data set " + in_quotes(spec_name + ":" + own),
                 .expected = in_quotes(task),
                 .advice = "name the data set, or the folder that holds it"});
  }
  if (!is_plain_file_name(name)) {
    throw Error({.where = folder,
                 .what = in_quotes(name) + " cannot name a data set",
                 .expected = "letters, digits, '.', '_' and '-'",
                 .advice = "rename the folder"});
  }
  TaskOnData on{.name = spec_name + ":" + name, .settings = {}};
  if (is_prepared(folder)) {
    const Dataset dataset = Dataset::open(folder, /*verify=*/false);
    // Data of another task is refused where it is opened.
    if (dataset.manifest().task == spec_name) on.settings = spec.settings_of(dataset.manifest());
  }
  on.settings.set("name", {name, folder});
  return on;
}

void refuse_import_settings(const TaskSpec& spec, const ConfigTable& stated,
                            const ConfigTable& given) {
  for (const std::string_view key : spec.import_settings) {
    const std::string name(key);
    const ConfigValue *was = stated.find(name), *is = given.find(name);
    if (!was || !is) continue;
    const std::string before = setting_text(*was), now = setting_text(*is);
    if (before == now) continue;
    throw Error({.where = "task." + name,
                 .what = "has an effect only at the import, and the data was imported with " +
                         name + " = " + before + ", not " + name + " = " + now,
                 .expected = "the setting of the import, or none",
                 .advice = "import the files again with the other one, into another folder"});
  }
}

std::optional<Dataset> data_at_hand(const TaskSpec& spec, const Task& task,
                                    const std::string& root) {
  const std::string folder = prepared_folder(spec, task, root);
  if (!is_prepared(folder)) return std::nullopt;
  try {
    return Dataset::open(folder, /*verify=*/false);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Dataset prepare_data(const TaskSpec& spec, const Task& task, const std::string& root, bool quiet,
                     OtherSettings others) {
  const std::string folder = prepared_folder(spec, task, root), name(spec.name);
  if (!is_prepared(folder)) {
    const std::string own = own_folder(spec, task, root);
    for (const std::string& place : {root, own, own + kPreparedEnding}) {
      refuse_without_manifest(place);
    }
    const std::vector<std::string> sources = sources_under(spec, task, root);
    if (sources.empty()) refuse_deeper_files(task, root);
    if (spec.settings_of) refuse_missing_own(spec, task.data_name(), root, folder);
    if (sources.empty()) {
      if (!task.can_generate()) refuse_missing(spec, root, folder);
      refuse_other_contents(spec, own);
      refuse_new_root(spec, root, folder);
      if (!quiet) {
        print_message("no data found for " + name + " in " + root + "; generating it in " + folder);
      }
    }
    make_folder(root);
    refuse_read_only(spec, root, sources);
    prepare_in_turn(spec, task, folder, sources, quiet);
  }
  Dataset dataset = open_dataset(spec, task, folder);
  if (others == OtherSettings::kRefused) task.refuse_other_settings(dataset);
  return dataset;
}

}  // namespace lra::tasks

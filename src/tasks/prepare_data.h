// Finding a task's data under a data root, importing or generating it when it is not prepared yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::tasks {

// The raw official data in the root or in ROOT/TASK, as Task::find_sources().
std::vector<std::string> sources_under(const TaskSpec& spec, const Task& task,
                                       const std::string& root);

// A task as determined by data under `root`: for one that takes its shape from its data,
// "custom:NAME" and the settings that the data states about itself, with lower priority than a
// user's. `task` is "custom" where `root` is the prepared folder or the prepared one is
// ROOT/custom, or "custom:NAME". Without data there are no settings: prepare_data() refuses then.
// Other tasks are as they are. Throws lra::Error when `task` names no data.
struct TaskOnData {
  std::string name;
  ConfigTable settings;  // of [task]
};
TaskOnData task_on_data(const std::string& task, const std::string& root);

// Throws lra::Error if `given`, the whole [task] of a new run on data that states `stated`, has
// another value for a setting that only an import reads: it would have no effect.
void refuse_import_settings(const TaskSpec& spec, const ConfigTable& stated,
                            const ConfigTable& given);

// "custom:NAME" for each data set of such a task in the folder `root`, in alphabetical order;
// damaged ones are left out.
std::vector<std::string> own_data_names(const TaskSpec& spec, const std::string& root);

// $LRA_DATA, else "data": the only folder that prepare_data() makes to generate data in.
std::string default_data_root();

// True if there is data, prepared or importable.
bool data_found(const TaskSpec& spec, const Task& task, const std::string& root);

// True if prepare_data would succeed without the network: prepared, importable or generated.
bool data_available(const TaskSpec& spec, const Task& task, const std::string& root);

// Calls task.import() into `out`, with what the checks find in its manifest, the warnings of the
// checks `accepted` as such; if one finds an error, nothing remains there.
void import_data(const Task& task, const std::vector<std::string>& sources, const std::string& out,
                 Progress& progress, const std::vector<std::string>& accepted = {});

// The prepared data under `root`, without comparing hashes of shards; nullopt if there is none, or
// it cannot be opened.
std::optional<Dataset> data_at_hand(const TaskSpec& spec, const Task& task,
                                    const std::string& root);

// Opens ROOT/TASK (or ROOT itself if it is a prepared folder of this task). Imports official files
// found under ROOT, or generates, into ROOT/TASK if there is none; without a folder ROOT it
// generates only if that is default_data_root(), so that a mistyped one is not filled. Of several
// processes that start at once one prepares and the others wait. Throws lra::Error with the place
// for the files.
enum class OtherSettings {
  kRefused,  // data made with other settings than the task has: figures would not tell them apart
  kTaken
};
Dataset prepare_data(const TaskSpec& spec, const Task& task, const std::string& root, bool quiet,
                     OtherSettings others = OtherSettings::kRefused);

}  // namespace lra::tasks

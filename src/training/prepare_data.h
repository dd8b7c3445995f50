// Finding a task's data under a data root, importing or generating it when it is not prepared yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/run_record.h"
#include "tasks/task.h"

namespace lra::training {

// Raw official data in the root or in ROOT/TASK, as arguments for import.
std::vector<std::string> sources_under(const tasks::TaskSpec& spec, const tasks::Task& task,
                                       const std::string& root);

// Whether data is there, prepared or importable.
bool data_found(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root);

// Whether prepare_data would succeed without the network: prepared, importable or generated.
bool data_available(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root);

// Throws lra::Error, exit code 2, when the data of that run would have to be generated and cannot
// be: it was imported, or has another number of examples than the task would make.
void refuse_lost_data(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root,
                      const RunRecord& record);

// Opens ROOT/TASK (or ROOT itself when it is a prepared folder of this task). Imports official
// files found under ROOT, or generates, into ROOT/TASK when there is none. Of several processes
// that start at once one prepares and the others wait. Throws lra::Error that says where to put
// what.
enum class OtherSettings {
  kRefused,  // data made with other settings than the task has: figures would not tell them apart
  kTaken
};
tasks::Dataset prepare_data(const tasks::TaskSpec& spec, const tasks::Task& task,
                            const std::string& root, bool quiet,
                            OtherSettings others = OtherSettings::kRefused);

}  // namespace lra::training

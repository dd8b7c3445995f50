// The list of tasks: the program knows only these.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace lra::tasks {

extern const TaskSpec kListOpsTask, kTextTask, kRetrievalTask, kImageTask;  // of the paper
extern const TaskSpec kPathfinderTask, kPathfinder64Task, kPathXTask, kPathfinder256Task;
extern const TaskSpec kRecallTask, kStateTask;  // diagnostic
extern const TaskSpec kCustomTask;              // the user's own data

std::span<const TaskSpec* const> all_tasks();

// `name` is a task's name; "custom:NAME" is the task custom on the data set NAME.
// Throws lra::Error "unknown task 'lisops'; did you mean 'listops'?".
const TaskSpec& find_task(std::string_view name);
// "NAME" of "custom:NAME"; empty for a task without it.
std::string_view data_name_of(std::string_view task);

// Opens a prepared folder for this task. Throws lra::Error when it belongs to another task or
// version, has other towers or token bytes than `task`, or, with `verify`, holds a token or label
// that the model has no embedding or class for.
Dataset open_dataset(const TaskSpec& spec, const Task& task, const std::string& folder,
                     bool verify = true);

}  // namespace lra::tasks

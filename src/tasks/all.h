// The list of tasks: the program knows only these.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tasks/task.h"

namespace lra::tasks {

// NAME is the TaskSpec kNAMETask of its source: those of the paper, diagnostic ones, own data.
#define LRA_ALL_TASKS(USE) \
  USE(ListOps)             \
  USE(Text)                \
  USE(Retrieval)           \
  USE(Image)               \
  USE(Pathfinder)          \
  USE(Pathfinder64)        \
  USE(PathX)               \
  USE(Pathfinder256)       \
  USE(Recall)              \
  USE(State)               \
  USE(Custom)
#define LRA_DECLARE_TASK(NAME) extern const TaskSpec k##NAME##Task;
LRA_ALL_TASKS(LRA_DECLARE_TASK)
#undef LRA_DECLARE_TASK

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

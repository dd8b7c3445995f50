// Pathfinder (32 x 32), its larger forms and Path-X (128 x 128).
#pragma once

#include "tasks/task.h"

namespace lra::tasks {

extern constinit const TaskSpec kPathfinderTask, kPathfinder64Task, kPathXTask, kPathfinder256Task;

}  // namespace lra::tasks

// How long a run trains, and what is worth a warning before it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/checkpoint.h"
#include "training/train_config.h"

namespace lra::training {

// Refuses settings that contradict each other. Throws lra::Error.
void check_train_config(const TrainConfig& config);

// Updates in all: train.steps, or as many as train.epochs or train.examples take on a training
// split of `num_examples` (the last one whole).
int64_t planned_steps(const TrainConfig& config, int64_t num_examples);

// Warnings about the schedule of a run of config.steps; one sentence each.
std::vector<std::string> schedule_warnings(const TrainConfig& config);

// Why training ends at this point although steps are left, as train.patience or train.max_seconds
// say; empty when it goes on. `seconds`: the run's time so far.
std::string early_end(const TrainConfig& config, const TrainProgress& progress, double seconds);

// True if early_end() gave this reason because time ran out.
bool is_end_by_time(const std::string& why);

// The last step up to `step` at whose end a checkpoint is written whatever happens: a validation or
// a multiple of train.checkpoint_every. 0 when there is none. Checkpoints that a signal asks for do
// not count, so that an interrupted run goes back to where an undisturbed one does.
int64_t last_scheduled_checkpoint(const TrainConfig& config, int64_t step);

}  // namespace lra::training

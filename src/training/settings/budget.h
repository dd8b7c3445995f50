// Schedule and length of a run, and warnings before it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/settings/train_config.h"
#include "training/settings/weights_file.h"

namespace lra::training {

// The learning rate at a step, as the released training loop defines it. `step` is the number of
// updates already made, so with warmup the first update has rate 0.
double learning_rate(const TrainConfig& config, int64_t step);

// Refuses settings that contradict each other. Throws lra::Error.
void check_train_config(const TrainConfig& config);

// Refuses a train.steps other than `steps_before` beside epochs or examples, which would decide.
void refuse_two_lengths(int64_t steps_before, const TrainConfig& train);

// Updates in all: train.steps, or as many as train.epochs or train.examples take on a training
// split of `num_examples` (the last one whole).
int64_t planned_steps(const TrainConfig& config, int64_t num_examples);

// Warnings about the schedule of a run of config.steps; one sentence each.
std::vector<std::string> schedule_warnings(const TrainConfig& config);

// A sentence if the learning rate jumps by more than a tenth where a run goes on after `step` with
// other settings, each with its own number of steps; else empty.
std::string rate_jump(const TrainConfig& before, const TrainConfig& now, int64_t step);

// Reason why training ends at this point although steps are left, by train.patience or
// train.max_seconds; empty if it continues. `seconds`: the run's time so far.
std::string early_end(const TrainConfig& config, const TrainProgress& progress, double seconds);

// True if early_end() gave this reason because time ran out.
bool is_end_by_time(const std::string& why);

// The last step up to `step` after which a scheduled checkpoint is written: a validation or a
// multiple of train.checkpoint_every. 0 if there is none. Checkpoints requested by a signal do not
// count, so that an interrupted run goes back to the same step as an uninterrupted one.
int64_t last_scheduled_checkpoint(const TrainConfig& config, int64_t step);

}  // namespace lra::training

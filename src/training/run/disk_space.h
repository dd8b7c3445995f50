// Checks that the checkpoints of a run will fit on its device: before the run, not hours later.
#pragma once

#include <cstdint>

#include "training/ranks/flat_parameters.h"
#include "training/settings/run_folder.h"
#include "training/settings/train_config.h"

namespace lra::training {

// Bytes of one checkpoint, both files; an upper bound, at most 16 KiB plus 600 bytes per parameter
// tensor above the actual size.
uint64_t checkpoint_bytes(const FlatParameters& parameters);

// Moments at which a run that is at `step` will still save, those after `step` up to the last.
int64_t saves_ahead(const TrainConfig& train, int64_t step);

// Throws lra::Error (exit code 2) if the device has no room for the checkpoints that the run keeps
// at one time: train.keep_checkpoints, the best, the one being written and, with `keeps_first`,
// that of step 0. Space of checkpoints that the run has saved already counts as free.
void refuse_without_room(const RunFolder& folder, const FlatParameters& parameters,
                         const TrainConfig& train, int64_t step, bool keeps_first);

}  // namespace lra::training

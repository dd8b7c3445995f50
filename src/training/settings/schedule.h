// The learning rate at a step, as the released training loop defines it.
#pragma once

#include <cstdint>

#include "training/settings/train_config.h"

namespace lra::training {

// `step` is the number of updates already made, so with warmup the first update has rate 0.
double learning_rate(const TrainConfig& config, int64_t step);

}  // namespace lra::training

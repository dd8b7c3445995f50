// Randomness of one training step: a key per place where something random happens.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace lra::models {

// Keys are functions of (seed, step, part, layer, place), so a step can be run again bit for bit.
// Operators number dropout decisions from the first row of their input. So each micro-batch of a
// step (train.accumulate), and each group of rows that a sequence layer is called with, has its own
// keys: no two share a dropout pattern.
struct StepRandom {
  bool training = false;  // false: no dropout anywhere
  uint64_t seed = 0;
  int64_t step = 0;
  uint32_t part = 0;  // micro-batch of the step

  uint64_t key(uint32_t layer, uint32_t place) const {
    const uint64_t shared = step_key(layer, place);
    // The last argument separates these keys from those that mixers derive.
    return part == 0 ? shared : derive_key(shared, RandomUse::kDropout, part, 0, 1);
  }
  // The same in every micro-batch of a step, for draws that its examples share.
  uint64_t step_key(uint32_t layer, uint32_t place) const {
    return derive_key(seed, RandomUse::kDropout, static_cast<uint32_t>(step), layer, place);
  }
  // Key for rows of one group (models/layout.h); group 0 has the key itself.
  uint64_t group_key(uint32_t layer, uint32_t place, uint32_t group) const {
    return of_group(key(layer, place), group);
  }
  static uint64_t of_group(uint64_t key, uint32_t group) {
    return group == 0 ? key : derive_key(key, RandomUse::kDropout, group, 0, 2);
  }
  double rate(double configured) const { return training ? configured : 0.0; }
};

}  // namespace lra::models

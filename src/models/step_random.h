// Randomness of one training step: a key per place where something random happens.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace lra::models {

// Keys are functions of (seed, step, part, layer, place), so a step can be run again bit for bit.
// Operators number what they drop from the first row of their input; each micro-batch of a step
// (train.accumulate) therefore has keys of its own, and nothing is dropped alike in two of them.
struct StepRandom {
  bool training = false;  // false: no dropout anywhere
  uint64_t seed = 0;
  int64_t step = 0;
  uint32_t part = 0;  // micro-batch of the step

  uint64_t key(uint32_t layer, uint32_t place) const {
    const uint64_t shared = step_key(layer, place);
    // The last argument keeps apart what mixers derive from a key.
    return part == 0 ? shared : derive_key(shared, RandomUse::kDropout, part, 0, 1);
  }
  // The same in every micro-batch of a step: for what its examples share.
  uint64_t step_key(uint32_t layer, uint32_t place) const {
    return derive_key(seed, RandomUse::kDropout, static_cast<uint32_t>(step), layer, place);
  }
  double rate(double configured) const { return training ? configured : 0.0; }
};

}  // namespace lra::models

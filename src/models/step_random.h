// Randomness of one training step: a key per place where something random happens.
#pragma once

#include <cstdint>

#include "base/rng.h"

namespace lra::models {

// Keys are functions of (seed, step, layer, place), so a step can be run again bit for bit.
struct StepRandom {
  bool training = false;  // false: no dropout anywhere
  uint64_t seed = 0;
  int64_t step = 0;

  uint64_t key(uint32_t layer, uint32_t place) const {
    return derive_key(seed, RandomUse::kDropout, static_cast<uint32_t>(step), layer, place);
  }
  double rate(double configured) const { return training ? configured : 0.0; }
};

}  // namespace lra::models

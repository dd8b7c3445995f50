// Weights that a command asks for.
#pragma once

#include <string>

namespace lra::training {

struct WeightsChoice {
  // "last", "best", "step_N" or the path of a model.safetensors; empty: those that the run tested.
  std::string checkpoint = {};
  bool foreign = false;  // weights of another run are allowed
};

}  // namespace lra::training

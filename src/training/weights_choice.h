// Weights that a command asks for.
#pragma once

#include <string>

namespace lra::training {

struct WeightsChoice {
  std::string checkpoint = "last";  // "last", "best" or the path of a model.safetensors
  bool foreign = false;             // those of another run will do
};

}  // namespace lra::training

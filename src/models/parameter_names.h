// The tensors of a model by the names that they have in files.
#pragma once

#include <vector>

#include "models/model.h"

namespace lra::models {

// Parameters below `module` with their groups, and its buffers:
// "encoder.layers.0.mixer.qkv.weight".
std::vector<Parameter> named_parameters_of(const torch::nn::Module& module);
std::vector<Parameter> named_buffers_of(const torch::nn::Module& module);

}  // namespace lra::models

// Results of every model in many settings, on any device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/libtorch.h"

namespace lra {

// A model and how it computes.
struct Setting {
  const char* name;
  models::ModelConfig model = {};
  models::Execution execution = {};
  int64_t num_towers = 1;
  bool padded = true, training = true;
};
const std::vector<Setting>& model_settings();

// TOML of [mixer]: settings for short sequences, and those that choose another computation; the
// defaults for a mixer without such settings.
std::vector<const char*> mixer_settings(const mixers::LayerSpec& mixer);

// Logits, loss and all gradients of a small model on four examples, copied to the CPU.
std::vector<std::pair<std::string, at::Tensor>> results(const Setting& setting,
                                                        const mixers::LayerSpec& mixer,
                                                        const ConfigTable& config,
                                                        at::Device device);

}  // namespace lra

// Facts and settings of sequence layers, for code that has no tensors. The layers themselves:
// sequence_layer.h.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "layers/settings.h"

namespace lra::layers {
class Initializer;
}

namespace lra::mixers {

class SequenceLayer;

// The maximum of a setting that counts tokens: longer than any sequence, and far from where sums of
// such numbers overflow.
inline constexpr int64_t kMostTokens = int64_t{1} << 24;

// Arguments with which the encoder makes its sequence layers.
struct LayerShape {
  int64_t model_dim = 0;                  // D
  layers::AttentionShape attention = {};  // for those that attend
  int64_t max_length = 0;                 // the longest L that will come, CLS included
  int64_t layer = 0;                      // 0 for the first
};

// Facts about a mechanism for code that must not know it.
struct LayerFacts {
  // Its heads take averages of the tokens' values, with weights that an analysis can read off.
  bool attention_weights = false;
  bool attention_dropout = false;  // it drops attention weights
  bool draws_in_training = false;  // it is another function in training than in evaluation
  bool bound_to_length = false;    // it is another function at another max_length
};

// Parameters with an optimizer setting of their own, and its defaults, unless the [groups] of a run
// override them.
struct GroupSpec {
  std::string_view name;     // "ssm"
  std::string_view what;     // "state matrices and step sizes"
  double learning_rate = 0;  // instead of train.learning_rate; 0: that
  double weight_decay = 0;
};

struct LayerSpec {
  std::string_view name;                  // "linformer"
  std::string_view title;                 // "Linformer"
  std::string_view paper;                 // "Wang et al. 2020, arXiv:2006.04768"
  std::string_view family = "attention";  // or "state space", "convolution", ...
  std::string_view cost;                  // "L k"
  LayerFacts facts = {};
  std::span<const GroupSpec> groups = {};
  std::vector<FieldInfo> (*describe)() = nullptr;
  // [mixer] with every setting written out. Throws lra::Error for a bad one.
  ConfigTable (*resolve)(const ConfigTable& config) = nullptr;

  bool is_quadratic() const { return cost == "L^2"; }
  // The layer with these settings. Defined where layers are (make.cpp).
  std::shared_ptr<SequenceLayer> make(const layers::Initializer& init, const ConfigTable& config,
                                      const LayerShape& shape) const;
};

}  // namespace lra::mixers

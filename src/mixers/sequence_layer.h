// A sequence layer: the map [B, L, D] -> [B, L, D] that moves information along the sequence. It is
// the one thing that differs between the models of the benchmark; everything around it is written
// once in models/.
//
// Adding one: a .cpp here, a TOML under configs/models, its spec in all.h; then its test and its
// settings on a device (CONTRIBUTING.md). Help, sweeps, benchmarks and the report pick it up from
// the table.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "layers/context.h"
#include "layers/layer.h"
#include "layers/projections.h"

namespace lra::mixers {

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

// Padded positions of the result may hold anything finite; they never influence valid positions. A
// row's result depends neither on how far it is padded nor on the other rows: a batch comes in
// groups of rows of like length, one call each (models/layout.h).
class SequenceLayer : public layers::Layer {
 public:
  virtual at::Tensor forward(const at::Tensor& x_BLD, const layers::Context& context) = 0;
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
  std::shared_ptr<SequenceLayer> (*make)(const layers::Initializer& init, const ConfigTable& config,
                                         const LayerShape& shape) = nullptr;
};

// The spec of a class with a nested Config struct, whose functions follow from it.
template <typename M>
constexpr LayerSpec layer_spec(LayerSpec spec) {
  using Config = typename M::Config;
  spec.describe = [] { return describe_config<Config>(); };
  spec.resolve = [](const ConfigTable& table) { return resolve_config<Config>(table, "mixer"); };
  spec.make = [](const layers::Initializer& init, const ConfigTable& table,
                 const LayerShape& shape) -> std::shared_ptr<SequenceLayer> {
    return std::make_shared<M>(init, read_config<Config>(table, "mixer"), shape);
  };
  return spec;
}

}  // namespace lra::mixers

// A token mixer: the map [B, L, D] -> [B, L, D] that moves information along the sequence. It is
// the one thing that differs between the models of the benchmark; everything around it is written
// once in models/.
//
// Adding one: a .cpp here, a TOML under configs/models, its spec in all.h. Tests, help, sweeps,
// benchmarks and the report pick it up from the table.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "mixers/initializer.h"
#include "ops/libtorch.h"

namespace lra::mixers {

// The most that a setting which counts tokens may say: longer than any sequence, and far from where
// sums of such numbers overflow.
inline constexpr int64_t kMostTokens = int64_t{1} << 24;

// What a layer of the encoder asks of its mixer.
struct MixerShape {
  int64_t model_dim = 0;   // D
  int64_t heads = 0;       // H
  int64_t head_dim = 0;    // E; H * E need not equal D
  int64_t max_length = 0;  // the longest L that will come, CLS included
  int64_t layer = 0;       // 0 for the first
};

// What changes from call to call.
struct MixerContext {
  at::Tensor mask_BL;            // uint8, 1 = token, 0 = padding; undefined: no padding
  double attention_dropout = 0;  // 0 outside training
  uint64_t key = 0;              // for what is random in this layer, step and micro-batch
  uint64_t step_key = 0;         // for what all examples of the step share in this layer
  bool training = false;         // noise that a mechanism adds while it learns
  int64_t step = 0;              // of training, for what is drawn again every so many steps
  // int32, on the CPU: how many positions mask_BL has 1 at, all of them first. May be undefined.
  at::Tensor lengths_B = {};
};

// Padded positions of the result may hold anything finite; they never influence valid positions.
class Mixer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& x_BLD, const MixerContext& context) = 0;
};

struct MixerSpec {
  std::string_view name;   // "linformer"
  std::string_view title;  // "Linformer"
  std::string_view paper;  // "Wang et al. 2020, arXiv:2006.04768"
  std::string_view cost;   // "L k"
  bool attention_dropout;  // whether the mechanism drops attention weights
  std::vector<FieldInfo> (*describe)();
  // Reads [mixer]; throws lra::Error for a bad setting.
  std::shared_ptr<Mixer> (*make)(const ConfigTable& config, const MixerShape& shape,
                                 Initializer& init);
};

// The spec of a mixer class with a nested Config struct: the three functions follow from it.
template <typename M>
constexpr MixerSpec mixer_spec(std::string_view name, std::string_view title,
                               std::string_view paper, std::string_view cost,
                               bool attention_dropout) {
  using Config = typename M::Config;
  return {.name = name,
          .title = title,
          .paper = paper,
          .cost = cost,
          .attention_dropout = attention_dropout,
          .describe = [] { return describe_config<Config>(); },
          .make = [](const ConfigTable& config, const MixerShape& shape,
                     Initializer& init) -> std::shared_ptr<Mixer> {
            return std::make_shared<M>(read_config<Config>(config, "mixer"), shape, init);
          }};
}

}  // namespace lra::mixers

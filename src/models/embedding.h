// Token and position embedding (reference: Tay et al. 2021; docs/deviations.md, 2).
#pragma once

#include "base/task_shape.h"
#include "mixers/initializer.h"
#include "models/model_config.h"
#include "models/step_random.h"
#include "ops/libtorch.h"

namespace lra::models {

// Rows of a table [vocabulary, D] drawn from N(0, 1), not scaled; with CLS pooling a learned vector
// that starts at zero in front; position embedding over all positions, sinusoid or learned N(0,
// 0.02); dropout.
class Embedding : public torch::nn::Module {
 public:
  // max_positions: the longest input, CLS included.
  Embedding(const ModelConfig& config, int64_t vocabulary, int64_t max_positions,
            mixers::Initializer& init);

  // tokens int32 or int64 [B, L] -> [B, L or L + 1, D] in `type`: float32 (that of the parameters)
  // or bfloat16.
  at::Tensor forward(const at::Tensor& tokens_BL, const StepRandom& random,
                     at::ScalarType type = at::kFloat) const;

  // [P, D], P at least the longest input: in place of the model's own positions, which stay its
  // parameter or buffer.
  void set_positions(const at::Tensor& table_PD) { other_position_ = table_PD; }

 private:
  double dropout_;
  at::Tensor token_, cls_, position_, other_position_;
};

// sin(p w_c) in channel 2c and cos(p w_c) in channel 2c + 1, w_c = 10000^(-2c / D); [length, D].
at::Tensor sinusoid_table(int64_t length, int64_t dim);

}  // namespace lra::models

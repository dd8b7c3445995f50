// Maps tokens or values to vectors, and adds encodings of positions (reference: Tay et al. 2021;
// docs/deviations.md, 2).
#pragma once

#include "base/task_shape.h"
#include "layers/linear.h"
#include "models/layout.h"
#include "models/model.h"
#include "models/model_config.h"

namespace lra::models {

// Rows of a table [vocabulary, D] drawn from N(0, 1), not scaled, or one linear layer from values;
// one learned vector N(0, 1) in their place where a position is hidden; with CLS pooling a learned
// vector that starts at zero in front; position embedding over all positions, sinusoid or learned
// N(0, 0.02), or none; dropout.
class Embedding : public layers::Layer {
 public:
  // max_positions: the longest input, CLS included. hides: every input has hidden positions.
  Embedding(const layers::Initializer& init, const ModelConfig& config, const TaskShape& shape,
            int64_t max_positions, bool hides = false);

  // [B, L or L + 1, D], or [1, T, D] in groups, in `type`: float32 (that of the parameters) or
  // bfloat16.
  at::Tensor forward(const ModelInput& input, const StepRandom& random,
                     at::ScalarType type = at::kFloat, const Layout& layout = {}) const;

  // The table [vocabulary, D] and the encodings of positions [P, D]; undefined where there are
  // none.
  const at::Tensor& tokens() const { return token_; }
  const at::Tensor& positions() const { return position_; }
  // [P, D], P at least the longest input: replaces the model's own positions.
  void set_positions(const at::Tensor& table_PD) { other_position_ = table_PD; }

 private:
  // The vectors before dropout. hidden_BL: bool, or undefined.
  at::Tensor placed_vectors_of(const ModelInput& input, const at::Tensor& hidden_BL,
                               at::ScalarType type) const;
  at::Tensor vectors_of(const ModelInput& input, at::ScalarType type) const;

  double dropout_;
  at::Tensor token_, mask_, cls_, position_, other_position_;  // undefined: none
  std::shared_ptr<layers::Linear> value_;
};

}  // namespace lra::models

// Projections between the width of a model and the heads of an attention.
#pragma once

#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/settings.h"
#include "ops/linear.h"

namespace lra::layers {

// Role of the last part of a projection: the values that a mixer mixes, or queries.
enum class LastPart { kValues, kQueries };

// `count` projections D -> H * E of one input as one product, without bias: weight [count * H * E,
// D], each part Xavier-initialized on its own. forward gives [B, L, count, H, E].
class HeadProjection : public Layer {
 public:
  HeadProjection(const Initializer& init, int64_t count, int64_t model_dim,
                 const AttentionShape& shape, LastPart last = LastPart::kValues)
      : last_part(last), count_(count), shape_(shape) {
    std::vector<at::Tensor> parts;
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back(
          init.of("weight." + std::to_string(i)).xavier(shape.heads * shape.head_dim, model_dim));
    }
    weight = register_parameter("weight", at::cat(parts));
  }
  at::Tensor forward(const at::Tensor& x) const { return in_heads(ops::linear(x, weight)); }
  at::Tensor of_stream(at::Tensor& x) const { return in_heads(ops::linear_of_stream(x, weight)); }
  int64_t num_heads() const { return shape_.heads; }
  at::Tensor weight;
  const LastPart last_part;

 private:
  at::Tensor in_heads(const at::Tensor& y) const {
    return y.view({y.size(0), y.size(1), count_, shape_.heads, shape_.head_dim});
  }

  int64_t count_;
  AttentionShape shape_;
};

// [B, L, H, E] -> [B, L, D], without bias.
class HeadMerge : public Layer {
 public:
  HeadMerge(const Initializer& init, int64_t model_dim, const AttentionShape& shape) {
    weight = register_parameter("weight",
                                init.of("weight").xavier(model_dim, shape.heads * shape.head_dim));
  }
  at::Tensor forward(const at::Tensor& x_BLHE) const {
    return ops::linear(x_BLHE.flatten(2), weight);
  }
  at::Tensor weight;
};

}  // namespace lra::layers

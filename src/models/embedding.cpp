#include "models/embedding.h"

#include <cmath>

#include "mixers/on_device.h"
#include "ops/embedding.h"
#include "ops/pointwise.h"
#include "ops/precision.h"

namespace lra::models {
namespace {
constexpr double kPositionDeviation = 0.02;
constexpr uint32_t kEmbeddingLayer = 0xFFFF;  // apart from every encoder layer
}  // namespace

at::Tensor sinusoid_table(int64_t length, int64_t dim) {
  at::Tensor table = at::empty({length, dim}, at::kFloat);
  auto values = table.accessor<float, 2>();
  for (int64_t p = 0; p < length; ++p) {
    for (int64_t c = 0; c < dim; ++c) {
      const double frequency =
          std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(dim));
      const double angle = static_cast<double>(p) * frequency;
      values[p][c] = static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return table;
}

Embedding::Embedding(const ModelConfig& config, int64_t vocabulary, int64_t max_positions,
                     mixers::Initializer& init)
    : dropout_(config.dropout) {
  token_ = register_parameter("token", init.normal({vocabulary, config.embed_dim}, 1.0));
  if (config.pooling == "cls") cls_ = register_parameter("cls", init.zeros({config.embed_dim}));
  if (config.positions == "learned") {
    position_ = register_parameter(
        "position", init.normal({max_positions, config.embed_dim}, kPositionDeviation));
  } else {
    position_ = register_buffer(
        "position",
        mixers::on_device(sinusoid_table(max_positions, config.embed_dim), init.device()));
  }
}

at::Tensor Embedding::forward(const at::Tensor& tokens_BL, const StepRandom& random,
                              at::ScalarType type) const {
  at::Tensor x = type == at::kBFloat16 ? ops::rounded_rows(token_, tokens_BL)
                                       : at::embedding(token_, tokens_BL);
  if (cls_.defined()) x = at::cat({ops::beside(cls_, x).expand({x.size(0), 1, -1}), x}, 1);
  const at::Tensor& position = other_position_.defined() ? other_position_ : position_;
  LRA_CHECK_LE(x.size(1), position.size(0));
  x = x + ops::beside(position.narrow(0, 0, x.size(1)), x);
  return ops::dropout(x, random.rate(dropout_), random.key(kEmbeddingLayer, 0));
}

}  // namespace lra::models

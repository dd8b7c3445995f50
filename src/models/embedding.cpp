#include "models/embedding.h"

#include <algorithm>
#include <cmath>

#include "mixers/on_device.h"
#include "ops/pointwise.h"
#include "ops/precision.h"

namespace lra::models {
namespace {
constexpr double kPositionDeviation = 0.02;
constexpr uint32_t kEmbeddingLayer = 0xFFFF;  // apart from every encoder layer
constexpr int64_t kRowsAtOnce = 4096;

// Rows of a float32 table as bfloat16. The library would add the gradients of thousands of equal
// tokens up in bfloat16; here they are added in float32.
struct RoundedRows : torch::autograd::Function<RoundedRows> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& table,
                            const at::Tensor& tokens) {
    ctx->save_for_backward({tokens});
    ctx->saved_data["rows"] = table.size(0);
    return at::embedding(table.to(at::kBFloat16), tokens);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const at::Tensor tokens = ctx->get_saved_variables()[0].flatten();
    const at::Tensor grad = grads[0].flatten(0, -2);
    const int64_t rows = ctx->saved_data["rows"].toInt();
    at::Tensor sum = at::zeros({rows, grad.size(1)}, grad.options().dtype(at::kFloat));
    for (int64_t first = 0; first < tokens.size(0); first += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, tokens.size(0) - first);
      sum.add_(at::embedding_dense_backward(grad.narrow(0, first, count).to(at::kFloat),
                                            tokens.narrow(0, first, count), rows, -1, false));
    }
    return {sum, at::Tensor()};
  }
};
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
  at::Tensor x = type == at::kBFloat16 ? RoundedRows::apply(token_, tokens_BL)
                                       : at::embedding(token_, tokens_BL);
  if (cls_.defined()) x = at::cat({ops::beside(cls_, x).expand({x.size(0), 1, -1}), x}, 1);
  const at::Tensor& position = other_position_.defined() ? other_position_ : position_;
  LRA_CHECK_LE(x.size(1), position.size(0));
  x = x + ops::beside(position.narrow(0, 0, x.size(1)), x);
  return ops::dropout(x, random.rate(dropout_), random.key(kEmbeddingLayer, 0));
}

}  // namespace lra::models

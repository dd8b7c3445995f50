#include "models/embedding.h"

#include "layers/on_device.h"
#include "layers/positions.h"
#include "ops/embedding.h"
#include "ops/pointwise/pointwise.h"
#include "ops/precision.h"

namespace lra::models {
namespace {
constexpr double kPositionDeviation = 0.02;
constexpr uint32_t kEmbeddingLayer = 0xFFFF;  // apart from every encoder layer

// The first `length` positions of some rows; undefined stays undefined.
at::Tensor cut(const at::Tensor& x, const at::Tensor& rows_B, int64_t length) {
  return x.defined() ? x.narrow(1, 0, length).index_select(0, rows_B) : x;
}

// bool [B, L]: the places of input.places_M.
at::Tensor hidden_positions(const ModelInput& input) {
  LRA_CHECK(input.places_M.defined());
  const at::Tensor hidden =
      at::zeros({input.rows() * input.length()}, input.places_M.options().dtype(at::kBool));
  hidden.index_fill_(0, input.places_M, 1);
  return hidden.view({input.rows(), input.length()});
}

// `mask` [D] instead of the vectors at hidden positions. Over one axis: sums over several may
// depend on the number of threads.
at::Tensor with_mask(const at::Tensor& x_BLD, const at::Tensor& hidden_BL, const at::Tensor& mask) {
  return at::where(hidden_BL.flatten().unsqueeze(1), ops::beside(mask, x_BLD), x_BLD.flatten(0, 1))
      .view(x_BLD.sizes());
}

}  // namespace

Embedding::Embedding(const layers::Initializer& init, const ModelConfig& config,
                     const TaskShape& shape, int64_t max_positions, bool hides)
    : dropout_(config.embedding_dropout ? config.dropout : 0) {
  const int64_t dim = config.embed_dim;
  if (shape.values) {
    value_ = add<layers::Linear>("value", init, dim, shape.values->channels);
  } else {
    token_ = add_normal("token", init, {shape.vocabulary, dim}, 1.0);
  }
  if (hides) mask_ = add_normal("mask", init, {dim}, 1.0);
  if (config.pooling == "cls") cls_ = register_parameter("cls", init.zeros({dim}));
  if (config.positions == "learned") {
    position_ = add_normal("position", init, {max_positions, dim}, kPositionDeviation);
  } else if (config.positions == "sinusoid") {
    position_ = layers::on_device(layers::sinusoid_table(max_positions, dim), init.device());
  }
}

at::Tensor Embedding::vectors_of(const ModelInput& input, at::ScalarType type) const {
  if (value_) return value_->forward(input.values_BLC.to(value_->weight.scalar_type())).to(type);
  return type == at::kBFloat16 ? ops::rounded_rows(token_, input.tokens_BL)
                               : at::embedding(token_, input.tokens_BL);
}

at::Tensor Embedding::placed_vectors_of(const ModelInput& input, const at::Tensor& hidden_BL,
                                        at::ScalarType type) const {
  at::Tensor x = vectors_of(input, type);
  if (hidden_BL.defined()) x = with_mask(x, hidden_BL, mask_);
  if (cls_.defined()) x = at::cat({ops::beside(cls_, x).expand({x.size(0), 1, -1}), x}, 1);
  const at::Tensor& position = other_position_.defined() ? other_position_ : position_;
  if (position.defined()) {
    LRA_CHECK_LE(x.size(1), position.size(0));
    x = x + position.narrow(0, 0, x.size(1)).to(x.scalar_type());
  }
  return x;
}

at::Tensor Embedding::forward(const ModelInput& input, const StepRandom& random,
                              at::ScalarType type, const Layout& layout) const {
  const at::Tensor hidden_BL = mask_.defined() ? hidden_positions(input) : at::Tensor();
  std::vector<at::Tensor> groups;
  for (int64_t first = 0; const RowGroup& group : layout.groups) {
    const at::Tensor rows_B = layout.rows_B.narrow(0, first, group.rows);
    const int64_t length = group.length - (cls_.defined() ? 1 : 0);
    const ModelInput rows{.tokens_BL = cut(input.tokens_BL, rows_B, length),
                          .values_BLC = cut(input.values_BLC, rows_B, length)};
    groups.push_back(placed_vectors_of(rows, cut(hidden_BL, rows_B, length), type));
    first += group.rows;
  }
  const at::Tensor x = groups.empty() ? placed_vectors_of(input, hidden_BL, type) : join(groups);
  return ops::dropout(x, random.rate(dropout_), random.key(kEmbeddingLayer, 0));
}

}  // namespace lra::models

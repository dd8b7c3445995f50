#include "layers/gated_output.h"

#include <algorithm>

#include "base/error.h"
#include "layers/feed_forward.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/pointwise.h"

namespace lra::layers {

GatedOutput::GatedOutput(const Initializer& init, int64_t model_dim, const std::string& kind)
    : kind_(kind) {
  const auto kinds = gated_outputs();
  LRA_CHECK(std::ranges::find(kinds, kind) != kinds.end());
  if (kind == "none") return;
  linear_ = add<Linear>("linear", init, kind == "glu" ? 2 * model_dim : model_dim, model_dim);
}

at::Tensor GatedOutput::forward(const at::Tensor& y_BLD, const Context& context) const {
  const uint64_t key = derive_key(context.key, RandomUse::kDropout, kDropoutPlace);
  at::Tensor g = context.tied_dropout
                     ? tied_dropout(ops::gelu_dropout(y_BLD, 0, key), context.dropout, key)
                     : ops::gelu_dropout(y_BLD, context.dropout, key);
  if (kind_ == "none") return g;
  const at::Tensor z = linear_->of_stream(g);
  if (kind_ == "glu") return ops::glu(z);
  if (kind_ == "linear") return z;
  return ops::gate(kind_ == "half_glu1" ? g : y_BLD, z);
}

}  // namespace lra::layers

// Performer (Choromanski et al. 2021, arXiv:2009.14794): softmax attention estimated by positive
// orthogonal random features, FAVOR+. With x' = E^-1/4 x and random rows w_r, r = 1 .. R,
//
//   phi_r(x) = R^-1/2 exp(w_r . x' - |x'|^2 / 2)                       (lemma 1, equation 5)
//   o_i = sum_j (phi(q_i) . phi(k_j)) v_j / sum_j phi(q_i) . phi(k_j)   (equation 4)
//
// Taken in another order, these sums are two softmax attentions with the rows w_r in the middle:
// with n_r = log sum_j exp(w_r . k'_j - |k'_j|^2 / 2),
//
//   u_r = sum_j exp(w_r . k'_j - |k'_j|^2 / 2 - n_r) v_j        R queries w_r, L keys k'_j
//   o_i = sum_r softmax_r(w_r . q'_i + n_r) u_r                 L queries q'_i, R keys w_r
//
// (R^-1/2 and |q'_i|^2 / 2 cancel.) So the attention kernel computes it in O(L R E) time and O(L E)
// memory: no feature is ever stored. Logarithms cannot overflow and the denominator cannot vanish,
// so there is nothing to stabilize; the authors' code subtracts maxima and adds 1e-6 to each
// feature (docs/deviations.md, 13c).
//
// One draw of the rows serves all heads of a layer. Evaluation uses draw 0, a function of the run's
// seed; training step s uses draw s / redraw. By default nothing is redrawn, so that a model is
// tested with the features it was trained with; the paper finds that redrawing helps a model to
// learn softmax attention itself, which requires a short interval.
//
// With `causal`, j <= i in both sums. Their order cannot be exchanged then, so the features exist:
// their products with the values are summed by the scan of ops/scan/matrix_scan.h. Logarithms of a
// query's features are relative to the largest, and those of keys at most 60, which no query of
// usual length reaches: at E = 64 they are below 40.
//
// `features = "relu"` is the variant that the benchmark's authors ran on all tasks but ListOps:
// phi(x) = relu(x) + 1e-3 without any random numbers (docs/deviations.md, 13a).
#include <cmath>

#include "base/rng.h"
#include "layers/on_device.h"
#include "mixers/random_features.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/performer.h"
#include "ops/attention/attention.h"
#include "ops/attention/feature_attention.h"
#include "ops/linear.h"
#include "ops/precision.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kReluOffset = 1e-3;
constexpr double kLargestLog = 60;  // of a key's feature: sums of exp(60) v stay far below 1e38

class Performer : public SelfAttention {
 public:
  using Config = PerformerConfig;

  Performer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : SelfAttention(init, shape), config_(config), head_dim_(shape.attention.head_dim) {
    if (config_.features != "softmax") return;
    key_ = init.of("features").key();
    features_ = register_buffer("features", layers::on_device(draw(0), init.device()));
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const Tensor qkv_BL3HE = qkv_->forward(x_BLD);
    if (config_.features == "relu") {
      const auto attend =
          config_.causal ? ops::causal_feature_attention : ops::packed_feature_attention;
      return output_->forward(attend(qkv_BL3HE, context.mask_BL,
                                     {.map = kernels::FeatureMap::kRelu, .offset = kReluOffset}));
    }
    const auto parts = qkv_BL3HE.unbind(2);
    const auto attend = config_.causal ? causal_favor : favor;
    return output_->forward(
        attend(parts[0], parts[1], parts[2], features(context), context.mask_BL));
  }

 private:
  Tensor draw(int64_t index) const {
    const auto norms = config_.norms == "gaussian" ? FeatureNorms::kGaussian : FeatureNorms::kFixed;
    return orthogonal_features(config_.num_features, head_dim_, norms,
                               derive_key(key_, RandomUse::kMixer, static_cast<uint32_t>(index)));
  }

  Tensor features(const layers::Context& context) {
    const int64_t index =
        context.training && config_.redraw > 0 ? context.step / config_.redraw : 0;
    if (index == 0) return features_;
    if (index != drawn_index_) {
      drawn_ = layers::on_device(draw(index).to(features_.scalar_type()), features_.device());
      drawn_index_ = index;
    }
    return drawn_;
  }

  // As favor(), with features of its own for each position.
  static Tensor causal_favor(const Tensor& q_BLHE, const Tensor& k_BLHE, const Tensor& v_BLHE,
                             const Tensor& w_RE, const Tensor& mask_BL) {
    const auto logs = [&](const Tensor& x_BLHE) {
      const double scale = std::pow(static_cast<double>(x_BLHE.size(3)), -0.25);
      const Tensor x = x_BLHE.to(ops::wide_type(x_BLHE)) * scale;
      return ops::linear(x, w_RE.to(x.scalar_type())) - x.square().sum(-1, true) / 2;
    };
    const Tensor q_BLHR = logs(q_BLHE), k_BLHR = logs(k_BLHE).clamp_max(kLargestLog);
    const auto type = v_BLHE.scalar_type();
    return ops::causal_attention_of_features(
        (q_BLHR - q_BLHR.detach().amax(-1, true)).exp().to(type), k_BLHR.exp().to(type), v_BLHE,
        mask_BL);
  }

  // Returns the addend of a score, [B, N, H, 1], as columns of the keys that meet ones in the
  // queries. bfloat16 needs two, a number and its rounding error: a single one would put an error
  // of 2^-9 of the addend into the exponent.
  static std::vector<Tensor> added_columns(const Tensor& addend, at::ScalarType type) {
    if (type != at::kBFloat16) return {addend};
    const Tensor rounded = addend.detach().to(type);
    // An addend of -infinity leaves nothing, not NaN.
    return {rounded, at::where(rounded.isinf(), 0, addend - rounded).to(type)};
  }

  // q, k, v [B, L, H, E], w [R, E] -> [B, L, H, E]. The addend of a score is divided by `scale`,
  // because the operator multiplies q . k by it.
  static Tensor favor(const Tensor& q_BLHE, const Tensor& k_BLHE, const Tensor& v_BLHE,
                      const Tensor& w_RE, const Tensor& mask_BL) {
    const int64_t batch = q_BLHE.size(0), heads = q_BLHE.size(2), width = q_BLHE.size(3);
    const double scale = std::pow(static_cast<double>(width), -0.25);
    const at::ScalarType type = q_BLHE.scalar_type();
    const Tensor lengths_BLH1 = k_BLHE.square().sum(-1, true, ops::wide_type(type)) * (-scale / 2);
    std::vector<Tensor> keys = added_columns(lengths_BLH1, type);
    const auto columns = static_cast<int64_t>(keys.size());
    const auto with_ones = [&](const Tensor& t) { return at::constant_pad_nd(t, {0, columns}, 1); };
    const auto for_all = [&](const Tensor& rows_RE) {
      return rows_RE.unsqueeze(0).unsqueeze(2).expand({batch, -1, heads, -1});
    };
    keys.insert(keys.begin(), k_BLHE);
    const Tensor rows_RE = ops::beside(w_RE, q_BLHE);
    const ops::PartialAttention summary = ops::partial_attention(
        for_all(with_ones(rows_RE)), at::cat(keys, -1), at::constant_pad_nd(v_BLHE, {0, columns}),
        {}, {.keys = mask_BL, .queries = {}}, {}, scale);
    std::vector<Tensor> rows =
        added_columns(summary.logsumexp_BHL.transpose(1, 2).unsqueeze(-1) / scale, type);
    rows.insert(rows.begin(), for_all(rows_RE));
    const Tensor out = ops::attention(with_ones(q_BLHE), at::cat(rows, -1), summary.out_BLHE, {},
                                      {.keys = {}, .queries = mask_BL}, {}, scale);
    return out.narrow(-1, 0, width);
  }

  Config config_;
  int64_t head_dim_;
  uint64_t key_ = 0;
  Tensor features_;  // draw 0
  Tensor drawn_;     // the last other one
  int64_t drawn_index_ = 0;
};

}  // namespace

constinit const LayerMaker kMakePerformer = make_layer<Performer>;

}  // namespace lra::mixers

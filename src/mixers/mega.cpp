// Mega (Ma et al. 2023, arXiv:2209.10655): a moving average along the sequence, and one head of
// gated attention over its output.
//
// The multi-dimensional damped EMA (section 3.1) has `ema_dim` real states for each channel and
// direction: with p = sigmoid(delta) and q = 1 - p sigmoid(alpha), the kernel is k[l] = sum_n eta_n
// p_n beta_n q_n^l / sqrt(ema_dim), and m = SiLU(k * x + omega x). Both directions see x[t] itself.
// Then (section 3.2)
//
//   v = SiLU(W_v x),  [u, z, r, e] = W m + b,  z and r through SiLU,  q, k = scale z + shift,
//   h = SiLU(e + W_h (attention(q, k) v * r)),  y = sigmoid(u) (h - x),
//
// and the block's residual connection makes it x + sigmoid(u) (h - x); with a norm before the
// layer, x in this last step is the residual stream. The weights of attention are softmax(q k^T /
// sqrt(z_dim) + b) or laplace(q k^T / n + b) with n visible keys and a learned b for each distance;
// laplace(s) = (1 + erf((s - sqrt(1/2)) / sqrt(2 / (4 pi)))) / 2. With a `chunk`, tokens see only
// their own chunk, and the cost is linear in L (section 3.5).
//
// Differences from the authors' code (facebookresearch/mega): docs/deviations.md.
#include "mixers/specs/mega.h"
#include "layers/feed_forward.h"
#include "mixers/sequence_layer.h"
#include "ops/attention/attention.h"
#include "ops/linear.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/pointwise.h"
#include "ops/precision.h"
#include "ops/scan/damped_poles.h"
#include "ops/scan/diagonal_scan.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kMegaDeviation = 0.02;      // of weights at first
constexpr uint32_t kAverageDropout = 0xE3A;  // keeps its key apart from others of the layer

// Sequences cut into chunks of at most `chunk` positions, one below another, the last one padded.
struct Chunks {
  Chunks(const Tensor& t_BLE, int64_t chunk, const Tensor& mask_BL)
      : batch(t_BLE.size(0)), length(t_BLE.size(1)), size(std::min(chunk, length)) {
    missing = (length + size - 1) / size * size - length;
    if (!mask_BL.defined() && missing == 0) return;
    const auto bytes = t_BLE.options().dtype(at::kByte);
    valid = cut(mask_BL.defined() ? mask_BL : at::ones({batch, length}, bytes)).contiguous();
  }
  // [B, L, ...] -> [B chunks, size, ...]; padding is 0.
  Tensor cut(const Tensor& t) const {
    std::vector<int64_t> padding(static_cast<size_t>(2 * (t.dim() - 1)), 0);
    padding.back() = missing;
    const Tensor whole = missing > 0 ? at::constant_pad_nd(t, padding) : t;
    return whole.unflatten(1, {-1, size}).flatten(0, 1);
  }
  Tensor join(const Tensor& t) const {
    return t.unflatten(0, {batch, -1}).flatten(1, 2).narrow(1, 0, length);
  }

  int64_t batch, length, size, missing;
  Tensor valid;  // uint8 [B chunks, size]; undefined: all
};

class Mega : public SequenceLayer {
 public:
  using Config = MegaConfig;

  Mega(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), dim_(shape.model_dim) {
    const int64_t z = config.z_dim, v = config.v_dim;
    if (config.chunk == 0) config_.chunk = shape.max_length;
    const std::vector<int64_t> states = {config.bidirectional ? 2 : 1, config.ema_dim, dim_};
    delta_ = add_normal("ema_delta", init, states, 0.2);
    alpha_ = add_normal("ema_alpha", init, states, 0.2);
    // 1, -1, 1, ...
    const Tensor signs = 1 - 2 * at::arange(config.ema_dim).remainder(2).to(at::kFloat);
    beta_ = register_parameter("ema_beta", init.of("ema_beta").normal(states, kMegaDeviation) +
                                               signs.to(init.device()).unsqueeze(1));
    eta_ = add_normal("ema_eta", init, states, 1);
    omega_ = add_normal("ema_omega", init, {dim_}, 1);
    value_ = add_weights("value", init, v, dim_);
    base_ = add_weights("base", init, 2 * dim_ + z + v, dim_);
    hidden_ = add_weights("hidden", init, dim_, v);
    scale_ = add_normal("scale", init, {2, z}, kMegaDeviation);
    shift_ = register_parameter("shift", init.zeros({2, z}));
    bias_ = add_normal("position_bias", init, {2 * config_.chunk - 1}, kMegaDeviation);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const int64_t z = config_.z_dim, v = config_.v_dim;
    const Tensor average = dropped(ops::silu(moving_average(x_BLD, context.mask_BL)), context);
    const auto base = base_(average).split_with_sizes({dim_, z, v, dim_}, 2);
    const Tensor shared = ops::silu(base[1]);
    // A product with two diagonal matrices takes less time than scaling and shifting twice.
    const Tensor scales = at::diag_embed(scale_).flatten(0, 1);
    const auto qk = ops::linear(shared, scales, shift_.flatten()).split(z, 2);
    const Tensor attended = attention(qk[0], qk[1], ops::silu(value_(x_BLD)), context.mask_BL);
    const Tensor h = ops::silu(base[3] + hidden_(ops::silu(base[2], attended)));
    const Tensor& stream = context.stream_BLD.defined() ? context.stream_BLD : x_BLD;
    return ops::gate(h - stream, base[0]);
  }

 private:
  struct Weights {
    Tensor weight, bias;
    Tensor operator()(const Tensor& x) const { return ops::linear(x, weight, bias); }
  };

  Weights add_weights(const std::string& name, const layers::Initializer& init, int64_t out,
                      int64_t in) {
    return {add_normal(name + "_weight", init, {out, in}, kMegaDeviation),
            register_parameter(name + "_bias", init.zeros({out}))};
  }

  static Tensor dropped(const Tensor& x, const layers::Context& context) {
    const uint64_t key = derive_key(context.key, RandomUse::kDropout, kAverageDropout);
    return context.tied_dropout ? layers::tied_dropout(x, context.dropout, key)
                                : ops::dropout(x, context.dropout, key);
  }

  // k * x + omega x.
  Tensor moving_average(const Tensor& x_BLD, const Tensor& mask_BL) const {
    const auto poles = ops::damped_poles({delta_, alpha_, beta_, eta_, omega_});
    return ops::diagonal_scan({.x_BLD = x_BLD,
                               .a_PND = poles.a_1ND,
                               .c_KPND = poles.c_K1ND,
                               .skip_D = poles.skip_D,
                               .mask_BL = mask_BL});
  }

  // [B, L, z], [B, L, z], [B, L, v] -> [B, L, v]
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask_BL) const {
    const Chunks chunks(q, config_.chunk, mask_BL);
    const auto wide = ops::wide_type(q);
    const int64_t size = chunks.size;
    // A part has a gradient with zeros around it.
    const Tensor seen =
        size == config_.chunk ? bias_ : bias_.narrow(0, config_.chunk - size, 2 * size - 1);
    const Tensor bias = seen.to(wide).unsqueeze(0);
    Tensor queries = chunks.cut(q).unsqueeze(2);
    const Tensor keys = chunks.cut(k).unsqueeze(2), values = chunks.cut(v).unsqueeze(2);
    auto kind = kernels::AttentionWeights::kSoftmax;
    double scale = layers::inverse_root(config_.z_dim);
    if (config_.attention == "laplace") {
      // Scores are divided by the number of keys in each chunk.
      kind = kernels::AttentionWeights::kLaplace;
      scale = 1 / static_cast<double>(size);
      if (chunks.valid.defined()) {
        const Tensor count = chunks.valid.sum(1).clamp_min(1).view({-1, 1, 1, 1});
        queries = queries * (static_cast<double>(size) / count.to(wide)).to(q.scalar_type());
      }
    }
    const Tensor out = ops::attention(queries, keys, values, {}, {chunks.valid, chunks.valid}, {},
                                      scale, bias, kind);
    return chunks.join(out.squeeze(2));
  }

  Config config_;
  int64_t dim_;
  Tensor delta_, alpha_, beta_, eta_;  // [directions, ema_dim, D]
  Tensor omega_;                       // [D]
  Weights value_, base_, hidden_;
  Tensor scale_, shift_;  // [2, z]: of queries, of keys
  Tensor bias_;           // [2 chunk - 1]: distance key - query from 1 - chunk on
};

}  // namespace

constinit const LayerMaker kMakeMega = make_layer<Mega>;

}  // namespace lra::mixers

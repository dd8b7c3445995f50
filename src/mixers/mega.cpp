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
// their own chunk, and the cost is linear in L (section 3.5). Scores exist a few rows at a time.
//
// Differences from the authors' code (facebookresearch/mega): docs/deviations.md.
#include <numbers>

#include "layers/feed_forward.h"
#include "mixers/row_chunks.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/mega.h"
#include "ops/gate.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/precision.h"
#include "ops/product.h"
#include "ops/scan/diagonal_scan.h"
#include "ops/softmax.h"

namespace lra::mixers {
namespace {

using at::Tensor;

constexpr double kMegaDeviation = 0.02;             // of weights at first
constexpr uint32_t kAverageDropout = 0xE3A;         // keeps its key apart from others of the layer
constexpr int64_t kMegaWeights = int64_t{1} << 21;  // attention weights in memory at a time

// SiLU.
Tensor swish(const Tensor& x) { return ops::gate(x, x); }

// In float64: the library's own gives different bits at different numbers of threads.
Tensor wide_sigmoid(const Tensor& x) { return 1 / (1 + (-x.to(at::kDouble)).exp()); }

// Sequences cut into chunks of at most `chunk` positions, one below another, the last one padded.
struct Chunks {
  Chunks(int64_t batch, int64_t length, int64_t chunk, const Tensor& mask_BL)
      : batch(batch), length(length), size(std::min(chunk, length)) {
    missing = (length + size - 1) / size * size - length;
    if (!mask_BL.defined() && missing == 0) return;
    valid = cut(mask_BL.defined() ? mask_BL : at::ones({batch, length}, at::kByte)).to(at::kBool);
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
  Tensor valid;  // bool [B chunks, size]; undefined: all
};

class Mega : public SequenceLayer {
 public:
  using Config = MegaConfig;

  Mega(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), dim_(shape.model_dim) {
    const int64_t z = config.z_dim, v = config.v_dim;
    if (config.chunk == 0) config_.chunk = shape.max_length;
    const auto normal = [&](const char* name, at::IntArrayRef sizes, double deviation) {
      return register_parameter(name, init.of(name).normal(sizes, deviation));
    };
    const std::vector<int64_t> states = {config.bidirectional ? 2 : 1, config.ema_dim, dim_};
    delta_ = normal("ema_delta", states, 0.2);
    alpha_ = normal("ema_alpha", states, 0.2);
    // 1, -1, 1, ...
    const Tensor signs = 1 - 2 * at::arange(config.ema_dim).remainder(2).to(at::kFloat);
    beta_ = register_parameter("ema_beta", init.of("ema_beta").normal(states, kMegaDeviation) +
                                               signs.to(init.device()).unsqueeze(1));
    eta_ = normal("ema_eta", states, 1);
    omega_ = normal("ema_omega", {dim_}, 1);
    value_ = add_weights("value", init, v, dim_);
    base_ = add_weights("base", init, 2 * dim_ + z + v, dim_);
    hidden_ = add_weights("hidden", init, dim_, v);
    scale_ = normal("scale", {2, z}, kMegaDeviation);
    shift_ = register_parameter("shift", init.zeros({2, z}));
    bias_ = normal("position_bias", {2 * config_.chunk - 1}, kMegaDeviation);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    const int64_t z = config_.z_dim, v = config_.v_dim;
    const Tensor average = dropped(swish(moving_average(x_BLD, context.mask_BL)), context);
    const auto base = base_(average).split_with_sizes({dim_, z + v, dim_}, 2);
    const auto zr = swish(base[1]).split_with_sizes({z, v}, 2);
    const auto scale = ops::beside(scale_, x_BLD), shift = ops::beside(shift_, x_BLD);
    const Tensor attended = attention(zr[0] * scale[0] + shift[0], zr[0] * scale[1] + shift[1],
                                      swish(value_(x_BLD)), context.mask_BL);
    const Tensor h = swish(base[2] + hidden_(attended * zr[1]));
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
    return {register_parameter(name + "_weight",
                               init.of(name + "_weight").normal({out, in}, kMegaDeviation)),
            register_parameter(name + "_bias", init.zeros({out}))};
  }

  static Tensor dropped(const Tensor& x, const layers::Context& context) {
    const uint64_t key = derive_key(context.key, RandomUse::kDropout, kAverageDropout);
    return context.tied_dropout ? layers::tied_dropout(x, context.dropout, key)
                                : ops::dropout(x, context.dropout, key);
  }

  // k * x + omega x. The second direction of the scan reads only inputs after x[t]: its kernel
  // without lag 0 has coefficients times q, and lag 0 applies to x[t] itself. Each direction has
  // its own states, which the other one does not read.
  Tensor moving_average(const Tensor& x_BLD, const Tensor& mask_BL) const {
    const Tensor p = wide_sigmoid(delta_), q = 1 - p * wide_sigmoid(alpha_);
    const Tensor c = p * beta_ * eta_ / std::sqrt(static_cast<double>(config_.ema_dim));
    Tensor a = q[0], read = c[0].unsqueeze(0), skip = omega_.to(at::kDouble);
    if (config_.bidirectional) {
      const Tensor none = at::zeros_like(c[0]);
      a = at::cat({q[0], q[1]}, 0);
      read = at::stack({at::cat({c[0], none}, 0), at::cat({none, c[1] * q[1]}, 0)});
      skip = skip + c[1].sum(0);
    }
    const auto type = ops::wide_type(x_BLD);
    return ops::diagonal_scan({.x_BLD = x_BLD,
                               .a_PND = a.unsqueeze(0).to(type),
                               .c_KPND = read.unsqueeze(1).to(type),
                               .skip_D = skip.to(type),
                               .mask_BL = mask_BL});
  }

  // [B, L, z], [B, L, z], [B, L, v] -> [B, L, v], computed in the type of sums.
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask_BL) const {
    const Chunks chunks(q.size(0), q.size(1), config_.chunk, mask_BL);
    const auto wide = [&](const Tensor& t) { return chunks.cut(t.to(ops::wide_type(t))); };
    // Number of keys in each chunk.
    const Tensor count = chunks.valid.defined()
                             ? chunks.valid.sum(1).clamp_min(1).view({-1, 1, 1})
                             : at::full({1, 1, 1}, chunks.size, q.options().dtype(at::kLong));
    // The backward pass may outlive the layer.
    const RowFunction f = [config = config_, chunks, count](const std::vector<Tensor>& rows,
                                                            const std::vector<Tensor>& whole,
                                                            int64_t first) {
      return ops::product(weights(config, rows[0], whole, first, chunks, count), whole[1]);
    };
    const Tensor keys = wide(k), bias = bias_.to(keys.scalar_type());
    const int64_t weights_of_row = keys.size(0) * chunks.size;
    const Tensor out = in_row_chunks({wide(q)}, {keys, wide(v), bias},
                                     std::max<int64_t>(1, kMegaWeights / weights_of_row), f);
    return chunks.join(out).to(v.scalar_type());
  }

  // Weights of queries first, first + 1, ... [b, rows, z]; `whole` is keys, values, bias. -> [b,
  // rows, size]
  static Tensor weights(const Config& config, const Tensor& q, const std::vector<Tensor>& whole,
                        int64_t first, const Chunks& chunks, const Tensor& count) {
    const int64_t rows = q.size(1), size = chunks.size;
    // Key j of query i has number j - i + chunk - 1: windows of the numbers, the last row's first.
    const Tensor bias =
        whole[2].narrow(0, config.chunk - first - rows, rows + size - 1).unfold(0, size, 1).flip(0);
    const Tensor products = ops::product(q, whole[0].transpose(1, 2));
    const Tensor hidden =
        chunks.valid.defined() ? chunks.valid.logical_not().unsqueeze(1) : Tensor();
    if (config.attention == "softmax") {
      const Tensor scores = products / std::sqrt(static_cast<double>(config.z_dim)) + bias;
      // Far below every score, yet finite: a chunk that is all padding stays free of NaN.
      return ops::softmax(hidden.defined() ? scores.masked_fill(hidden, -1e30) : scores);
    }
    const Tensor scores = products / count + bias;
    const Tensor laplace =
        0.5 * (1 + at::erf((scores - std::sqrt(0.5)) * std::sqrt(2 * std::numbers::pi)));
    return hidden.defined() ? laplace.masked_fill(hidden, 0) : laplace;
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

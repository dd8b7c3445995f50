// Synthesizer (Tay et al. 2020, arXiv:2005.00743): softmax attention whose scores s_ij do not come
// from comparing tokens. Per head, with E its width:
//
//   random             s = R                                   R [max_length, max_length]
//   factorized_random  s = R1 R2^T                             R1, R2 [max_length, rank]
//   dense              s_i = W2 relu(W1 x_i + b1) + b2         W1 [E, D], W2 [max_length, E]
//   factorized_dense   s_ij = a_i[j mod n] b_i[j div n]        a_i, b_i affine in relu(W1 x_i +
//   b1),
//                      with n = ceil(sqrt(max_length)), so that a_i and b_i are that long
//
// and o_i = softmax(s_i) V over the valid keys. `dot_product` adds q_i . k_j / sqrt(E) to any of
// them: the paper's mixtures. For factorized_dense the paper leaves open whether the two maps share
// their hidden layer; here they do.
//
// The benchmark does not say which one it ran; its authors' code adds full random matrices to the
// dot product, which is `--preset release` here. The default is factorized_random: its size grows
// with the length, not with the square of it. The benchmark wants models within ten per cent of the
// Transformer's size; with the paper's sizes rank 32 makes 1.16 times the parameters on ListOps and
// 1.46 times on Text, and more where the Transformer is small (`lra model compare`).
//
// Limits. Parameters: max_length^2 per head and layer for random, max_length * (2 rank) for
// factorized_random, max_length * (E + 1) for dense. Time grows with L^2 in every variant. Beyond
// parameters and their gradients memory is linear in L: the attention kernel adds R to its tiles of
// scores; factorized_random and dense scores are inner products, which it takes too (queries R1 and
// keys R2; queries relu(W1 x + b1) and keys W2); those of factorized_dense are made a few rows at a
// time (row_chunks.h).
#include <cmath>

#include "layers/linear.h"
#include "mixers/row_chunks.h"
#include "mixers/sequence_layer.h"
#include "mixers/specs/synthesizer.h"
#include "ops/attention/attention.h"
#include "ops/precision.h"
#include "ops/product.h"
#include "ops/softmax.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Weights that exist at a time where they are made in chunks: 16 MiB of float.
constexpr int64_t kChunkWeights = int64_t{1} << 22;

// Per head an affine map E -> rows: weight [H, rows, E], bias [H, rows].
class HeadAffine : public layers::Layer {
 public:
  HeadAffine(const layers::Initializer& init, int64_t heads, int64_t rows, int64_t width) {
    const double limit = std::sqrt(6.0 / static_cast<double>(rows + width));
    weight = register_parameter("weight", init.of("weight").uniform({heads, rows, width}, limit));
    bias = register_parameter("bias", init.zeros({heads, rows}));
  }
  // [B, L, H, E] -> [B, L, H, rows]
  Tensor forward(const Tensor& x_BLHE) const {
    const Tensor rows_HNE = x_BLHE.flatten(0, 1).transpose(0, 1);
    const Tensor y_HNR = ops::product(rows_HNE, ops::beside(weight, x_BLHE).transpose(1, 2));
    return y_HNR.transpose(0, 1).unflatten(0, {x_BLHE.size(0), x_BLHE.size(1)}) +
           ops::beside(bias, x_BLHE);
  }
  Tensor weight, bias;
};

class Synthesizer : public SequenceLayer {
 public:
  using Config = SynthesizerConfig;

  Synthesizer(const layers::Initializer& init, const Config& config, const LayerShape& shape)
      : config_(config), shape_(shape) {
    projection_ =
        add<layers::HeadProjection>(config.dot_product ? "qkv" : "value", init,
                                    config.dot_product ? 3 : 1, shape.model_dim, shape.attention);
    if (config.variant == "random") {
      make_random(init);
    } else if (config.variant == "factorized_random") {
      make_factors(init);
    } else {
      make_dense(init);
    }
    output_ = add<layers::HeadMerge>("output", init, shape.model_dim, shape.attention);
  }

  Tensor forward(const Tensor& x_BLD, const layers::Context& context) override {
    LRA_CHECK_LE(x_BLD.size(1), shape_.max_length);
    Tensor stream_BLD = x_BLD;
    const auto parts = projection_->of_stream(stream_BLD).unbind(2);
    const Inputs in{.queries = config_.dot_product ? parts[0] : Tensor(),
                    .keys = config_.dot_product ? parts[1] : Tensor(),
                    .values = parts.back(),
                    .context = context};
    if (config_.variant == "random") return output_->forward(random(in));
    if (config_.variant == "factorized_random") return output_->forward(factorized_random(in));
    const Tensor hidden_BLHE =
        at::relu(hidden_->forward(stream_BLD))
            .unflatten(2, {shape_.attention.heads, shape_.attention.head_dim});
    return output_->forward(config_.variant == "dense" ? dense(in, hidden_BLHE)
                                                       : factorized_dense(in, hidden_BLHE));
  }

 private:
  // Inputs of one call. Queries and keys [B, L, H, E] are undefined without the dot product.
  struct Inputs {
    Tensor queries, keys, values;
    const layers::Context& context;
  };
  void make_random(const layers::Initializer& init) {
    const int64_t length = shape_.max_length;
    // Xavier with fans of length * heads, as released.
    const double limit = std::sqrt(3.0 / static_cast<double>(length * shape_.attention.heads));
    random_ = register_parameter(
        "random", init.of("random").uniform({shape_.attention.heads, length, length}, limit));
  }

  void make_factors(const layers::Initializer& init) {
    const double limit = std::sqrt(6.0 / static_cast<double>(shape_.max_length + config_.rank));
    const auto factor = [&](const char* name) {
      return register_parameter(
          name,
          init.of(name).uniform({shape_.attention.heads, shape_.max_length, config_.rank}, limit));
    };
    factor1_ = factor("factor1");
    factor2_ = factor("factor2");
  }

  void make_dense(const layers::Initializer& init) {
    const int64_t width = shape_.attention.heads * shape_.attention.head_dim;
    hidden_ = add<layers::Linear>("hidden", init, width, shape_.model_dim);
    const auto affine = [&](const char* name, int64_t rows) {
      return add<HeadAffine>(name, init, shape_.attention.heads, rows, shape_.attention.head_dim);
    };
    if (config_.variant == "dense") {
      scores_ = affine("scores", shape_.max_length);
      return;
    }
    const auto side = static_cast<int64_t>(std::ceil(std::sqrt(shape_.max_length)));
    scores_a_ = affine("scores_a", side);
    scores_b_ = affine("scores_b", (shape_.max_length + side - 1) / side);
  }

  Tensor factorized_random(const Inputs& in) const {
    const auto rows = [&](const Tensor& factor_HLR) {
      return ops::beside(factor_HLR, in.values)
          .narrow(1, 0, in.values.size(1))
          .transpose(0, 1)
          .unsqueeze(0)
          .expand({in.values.size(0), -1, -1, -1});
    };
    return inner_product_attention(in, rows(factor1_), rows(factor2_));
  }

  Tensor dense(const Inputs& in, const Tensor& hidden_BLHE) const {
    const Tensor keys_HLN =
        ops::beside(at::cat({scores_->weight, scores_->bias.unsqueeze(-1)}, -1), in.values)
            .narrow(1, 0, in.values.size(1));
    return inner_product_attention(
        in, at::constant_pad_nd(hidden_BLHE, {0, 1}, 1),
        keys_HLN.transpose(0, 1).unsqueeze(0).expand({in.values.size(0), -1, -1, -1}));
  }

  // Scores rows . columns, both [B, L, H, N]: one attention, with the dot product as further
  // columns.
  Tensor inner_product_attention(const Inputs& in, Tensor rows, Tensor columns) const {
    const int64_t width = in.values.size(3);
    if (config_.dot_product) {
      rows = at::cat({in.queries / std::sqrt(static_cast<double>(width)), rows}, -1);
      columns = at::cat({in.keys, columns}, -1);
    }
    const int64_t common = std::max(rows.size(3), width);
    const auto widened = [&](const Tensor& t) {
      return t.size(3) == common ? t : at::constant_pad_nd(t, {0, common - t.size(3)});
    };
    const Tensor& mask_BL = in.context.mask_BL;
    return ops::attention(widened(rows), widened(columns), widened(in.values),
                          {.offsets = {}, .key_blocks = {}, .right = config_.causal ? 0 : -1},
                          {.keys = mask_BL, .queries = mask_BL},
                          {in.context.attention_dropout, in.context.key}, 1)
        .narrow(3, 0, width);
  }

  Tensor random(const Inputs& in) const {
    const Tensor& mask_BL = in.context.mask_BL;
    const Tensor none = config_.dot_product ? Tensor() : at::zeros_like(in.values);
    return ops::attention(config_.dot_product ? in.queries : none,
                          config_.dot_product ? in.keys : none, in.values,
                          {.offsets = {}, .key_blocks = {}, .right = config_.causal ? 0 : -1},
                          {.keys = mask_BL, .queries = mask_BL},
                          {in.context.attention_dropout, in.context.key}, 0, random_);
  }

  Tensor factorized_dense(const Inputs& in, const Tensor& hidden_BLHE) const {
    const auto& values = in.values;
    std::vector<Tensor> rows = {scores_a_->forward(hidden_BLHE), scores_b_->forward(hidden_BLHE)};
    std::vector<Tensor> whole = {values};
    if (config_.dot_product) {
      rows.push_back(in.queries);
      whole.push_back(in.keys);
    }
    // Called again in the backward pass, when this call's arguments are gone.
    const auto f = [context = in.context, config = config_](const std::vector<Tensor>& some_rows,
                                                            const std::vector<Tensor>& all,
                                                            int64_t first) {
      Tensor scores_BHRL = (some_rows[1].unsqueeze(-1) * some_rows[0].unsqueeze(-2))
                               .flatten(3)
                               .narrow(3, 0, all[0].size(1))
                               .transpose(1, 2);
      if (config.dot_product) {
        const double scale = layers::inverse_root(all[1].size(3));
        scores_BHRL = scores_BHRL + ops::product(some_rows.back().transpose(1, 2) * scale,
                                                 all[1].permute({0, 2, 3, 1}));
      }
      return weighted_values(scores_BHRL, all[0], context, config.causal, first);
    };
    const int64_t weights_of_row = values.size(0) * values.size(1) * values.size(2);
    return in_row_chunks(rows, whole, kChunkWeights / weights_of_row, f);
  }

  // Weighted values of queries first, first + 1, ... -> [B, rows, H, E].
  static Tensor weighted_values(const Tensor& scores_BHRL, const Tensor& values_BLHE,
                                const layers::Context& context, bool causal, int64_t first) {
    const int64_t rows = scores_BHRL.size(2), length = scores_BHRL.size(3);
    Tensor hidden;  // bool, broadcasts to [B, H, R, L]
    if (context.mask_BL.defined()) {
      hidden = context.mask_BL.logical_not().unsqueeze(1).unsqueeze(1);
    }
    if (causal) {
      const auto places = scores_BHRL.options().dtype(at::kLong);
      const Tensor later =
          at::arange(length, places).gt(at::arange(first, first + rows, places).unsqueeze(-1));
      hidden = hidden.defined() ? hidden | later : later;
    }
    // Far below every score, yet finite: an example that is all padding stays free of NaN.
    Tensor weights =
        ops::softmax(hidden.defined() ? scores_BHRL.masked_fill(hidden, -1e30) : scores_BHRL);
    if (context.attention_dropout > 0) {
      weights =
          weights * weight_dropout({values_BLHE.size(0), values_BLHE.size(2), rows, length}, first,
                                   {context.attention_dropout, context.key}, weights.options());
    }
    return ops::product(ops::beside(weights, values_BLHE), values_BLHE.transpose(1, 2))
        .transpose(1, 2);
  }

  Config config_;
  LayerShape shape_;
  std::shared_ptr<layers::HeadProjection> projection_;  // values, or queries, keys and values
  Tensor random_, factor1_, factor2_;
  std::shared_ptr<layers::Linear> hidden_;
  std::shared_ptr<HeadAffine> scores_, scores_a_, scores_b_;
  std::shared_ptr<layers::HeadMerge> output_;
};

}  // namespace

constinit const LayerMaker kMakeSynthesizer = make_layer<Synthesizer>;

}  // namespace lra::mixers

#include "analysis/attention_weights.h"

#include <algorithm>
#include <cmath>

#include "analysis/softmax_rows.h"
#include "base/error.h"
#include "base/text_format.h"
#include "layers/linear.h"
#include "layers/on_device.h"
#include "mixers/sequence_layer.h"

namespace lra::analysis {
namespace {

// Numbers in the columns that exist at a time: 32 MiB of float.
constexpr int64_t kMostNumbers = int64_t{1} << 23;
// Below the rounding of float32 sums of weights that are at most 1.
constexpr double kLeastWeight = -1e-4;
// Tolerance between columns that were read off and those of the softmax.
constexpr double kAgreement = 1e-4;

// While it lives, the values that a mixer mixes are channels D .. D + E - 1 of its input, alike in
// all heads, and its output is that of the heads side by side.
class ValuesFromInput {
 public:
  ValuesFromInput(torch::nn::Module& mixer, int64_t model_dim, int64_t head_dim) {
    for (const auto& module : mixer.modules(/*include_self=*/false)) {
      if (auto* projection = module->as<layers::HeadProjection>()) {
        replace(projection->weight, widened(*projection, projection->weight, model_dim, head_dim));
      } else if (auto* merge = module->as<layers::HeadMerge>()) {
        replace(merge->weight, at::eye(merge->weight.size(1), merge->weight.options()));
      } else if (auto* linear = module->as<layers::Linear>()) {
        LRA_CHECK_EQ(linear->weight.size(1), model_dim);
        replace(linear->weight, at::constant_pad_nd(linear->weight, {0, head_dim}));
      }
    }
  }
  ~ValuesFromInput() {
    for (auto& [place, weight] : kept_) *place = weight;
  }
  ValuesFromInput(const ValuesFromInput&) = delete;
  ValuesFromInput& operator=(const ValuesFromInput&) = delete;

 private:
  static at::Tensor widened(const layers::HeadProjection& projection, const at::Tensor& weight,
                            int64_t model_dim, int64_t head_dim) {
    at::Tensor wide = at::constant_pad_nd(weight, {0, head_dim}).contiguous();
    if (projection.last_part != layers::LastPart::kValues) return wide;
    const int64_t width = projection.num_heads() * head_dim;
    at::Tensor values = wide.narrow(0, wide.size(0) - width, width);
    values.zero_();
    values.narrow(1, model_dim, head_dim)
        .copy_(at::eye(head_dim, weight.options()).repeat({projection.num_heads(), 1}));
    return wide;
  }
  void replace(at::Tensor& place, at::Tensor weight) {
    kept_.emplace_back(&place, place);
    place = std::move(weight);
  }

  std::vector<std::pair<at::Tensor*, at::Tensor>> kept_;
};

}  // namespace

AttentionWeights::AttentionWeights(const models::SequenceClassifier& model,
                                   const models::ModelConfig& config, const mixers::LayerSpec& spec,
                                   std::string name)
    : model_(model),
      name_(std::move(name)),
      has_cls_(config.pooling == "cls"),
      heads_(config.heads),
      head_dim_(config.qkv_dim / config.heads),
      model_dim_(config.embed_dim) {
  if (config.receptive_field > 0) {
    throw Error({.where = name_,
                 .what = "sees blocks of " + std::to_string(config.receptive_field) + " tokens",
                 .expected = "model.receptive_field = 0",
                 .advice = "use a run that sees all tokens at once"});
  }
  if (!model.embedding().tokens().defined()) {
    throw Error({.where = name_,
                 .what = "reads values, not tokens",
                 .expected = "a run on tokens, whose attention this analysis follows"});
  }
  if (!spec.facts.attention_weights) {
    throw Error({.where = name_,
                 .what = std::string(spec.title) + " has no attention weights between tokens",
                 .expected = "a model whose heads average over tokens"});
  }
}

const models::EncoderBlock& AttentionWeights::block(int64_t layer) const {
  return *model_.encoder().blocks()[static_cast<size_t>(layer)];
}

std::vector<at::Tensor> AttentionWeights::mixer_inputs(const at::Tensor& tokens_1L) const {
  const torch::NoGradGuard no_grad;
  at::Tensor x =
      model_.embedding().forward({.tokens_BL = layers::on_device(tokens_1L, model_.device())}, {});
  std::vector<at::Tensor> inputs;
  for (const auto& block : model_.encoder().blocks()) {
    inputs.push_back(block->mixer_input(x));
    x = block->forward(x, {}, {});
  }
  return inputs;
}

// values [C, S, E], alike for all heads -> A values, [C, S, H, E].
at::Tensor AttentionWeights::apply(int64_t layer, const at::Tensor& x_1SD,
                                   const at::Tensor& values_CSE) const {
  const at::NoGradGuard no_grad;
  mixers::SequenceLayer& mixer = block(layer).mixer();
  const ValuesFromInput guard(mixer, model_dim_, head_dim_);
  const at::Tensor x = at::cat({x_1SD.expand({values_CSE.size(0), -1, -1}), values_CSE}, 2);
  return mixer.forward(x, {}).unflatten(2, {heads_, head_dim_});
}

// Columns first .. first + count - 1 of A, [H, S, count].
at::Tensor AttentionWeights::unit_columns(int64_t layer, const at::Tensor& x_1SD, int64_t first,
                                          int64_t count) const {
  const int64_t length = x_1SD.size(1), passes = (count + head_dim_ - 1) / head_dim_;
  at::Tensor values_CSE = at::zeros({passes, length, head_dim_});
  auto value = values_CSE.accessor<float, 3>();
  for (int64_t c = 0; c < count; ++c) value[c / head_dim_][first + c][c % head_dim_] = 1;
  const at::Tensor out_CSHE = apply(layer, x_1SD, layers::on_device(values_CSE, model_.device()));
  return out_CSHE.permute({2, 1, 0, 3}).flatten(2).narrow(2, 0, count).contiguous();
}

at::Tensor AttentionWeights::row_sums(int64_t layer, const at::Tensor& x_1SD) const {
  const at::Tensor ones = at::ones({1, x_1SD.size(1), head_dim_}, x_1SD.options());
  return apply(layer, x_1SD, ones).select(3, 0).squeeze(0).t().contiguous().cpu();
}

void AttentionWeights::check(int64_t layer, const at::Tensor& weights) const {
  const double least = weights.min().item<double>();
  if (least >= kLeastWeight && std::isfinite(weights.max().item<double>())) return;
  const std::string what = least < kLeastWeight
                               ? "weighs the values of tokens with both signs, down to " +
                                     fixed(least, 4) + ": it has no attention weights"
                               : "has attention weights that are not finite";
  throw Error({.where = name_,
               .what = "layer " + std::to_string(layer) + " " + what,
               .expected = least < kLeastWeight ? "a model whose heads average over tokens" : ""});
}

void AttentionWeights::for_each_tile(int64_t layer, const at::Tensor& x_1SD,
                                     const std::function<void(const WeightTile&)>& visit) const {
  const at::NoGradGuard no_grad;
  const int64_t length = x_1SD.size(1);
  const int64_t passes = std::max<int64_t>(1, kMostNumbers / (length * heads_ * head_dim_));
  const auto show = [&](int64_t first_query, int64_t first_key, at::Tensor weights) {
    check(layer, weights);
    visit({first_query, first_key, weights.clamp_min_(0).cpu()});
  };
  mixers::SequenceLayer& mixer = block(layer).mixer();
  if (const auto rows = SoftmaxRows::heard_in([&] { (void)mixer.forward(x_1SD, {}); })) {
    const int64_t count = std::min(head_dim_, length), first = (length - count) / 2;
    const at::Tensor columns = unit_columns(layer, x_1SD, first, count);
    if (rows->agree_with(columns, first, kAgreement)) {
      const int64_t step = std::max<int64_t>(1, kMostNumbers / (length * heads_));
      for (int64_t query = 0; query < length; query += step) {
        show(query, 0, rows->weights(query, std::min(step, length - query)));
      }
      return;
    }
  }
  for (int64_t key = 0; key < length; key += passes * head_dim_) {
    show(0, key, unit_columns(layer, x_1SD, key, std::min(passes * head_dim_, length - key)));
  }
}

}  // namespace lra::analysis

#include "models/classifier.h"

#include <regex>

#include "mixers/on_device.h"
#include "models/receptive_field.h"

namespace lra::models {
namespace {
constexpr int64_t kClsPositions = 1;
}

SequenceClassifier::SequenceClassifier(const TaskShape& shape, const ModelConfig& config,
                                       const mixers::MixerSpec& spec,
                                       const ConfigTable& mixer_config, uint64_t seed,
                                       const Execution& execution)
    : activations_(execution.activations),
      device_(execution.device),
      has_cls_(config.pooling == "cls"),
      receptive_field_(config.receptive_field),
      pooling_(config.pooling),
      pair_features_(shape.num_towers == 2 ? config.pair_features : "") {
  LRA_CHECK_LE(shape.num_towers, 2);
  mixers::Initializer init(seed, execution.device);
  const int64_t max_positions = shape.length + (has_cls_ ? kClsPositions : 0);
  embedding_ = register_module(
      "embedding", std::make_shared<Embedding>(config, shape.vocabulary, max_positions, init));
  const int64_t seen =
      receptive_field_ > 0 ? std::min(receptive_field_, shape.length) : shape.length;
  encoder_ =
      register_module("encoder", std::make_shared<Encoder>(config, spec, mixer_config,
                                                           seen + (has_cls_ ? kClsPositions : 0),
                                                           init, execution.recompute));
  const int64_t vectors = pair_features_.empty() ? 1 : pair_features_ == "nli" ? 4 : 2;
  head_ = register_module("head", std::make_shared<ClassifierHead>(
                                      config, vectors * config.embed_dim, shape.num_classes, init));
}

Padding SequenceClassifier::padding(const TokenBatch& batch) const {
  if (!batch.lengths_B.defined()) return {};
  const int64_t length = batch.tokens_BL.size(1);
  if (batch.lengths_B.min().item<int32_t>() == length) return {};
  const int64_t cls = has_cls_ ? kClsPositions : 0;
  const at::Tensor lengths_B = batch.lengths_B + cls;
  const at::Tensor there_B = mixers::on_device(lengths_B, batch.tokens_BL.device());
  const at::Tensor positions_L = at::arange(length + cls, there_B.options());
  return {positions_L.unsqueeze(0).lt(there_B.unsqueeze(1)).to(at::kByte), lengths_B};
}

at::Tensor SequenceClassifier::pooled(const at::Tensor& x_BLD, const Padding& padding,
                                      const StepRandom& random) const {
  const int64_t length = x_BLD.size(1) - (has_cls_ ? kClsPositions : 0);
  if (receptive_field_ == 0 || length <= receptive_field_) {
    return pool(encoder_->forward(x_BLD, padding, random), padding.mask_BL, pooling_);
  }
  const TokenBlocks blocks = cut_into_blocks(x_BLD, padding.mask_BL, receptive_field_, has_cls_);
  const at::Tensor read =
      pool(encoder_->forward(blocks.x_BLD, {blocks.mask_BL}, random), blocks.mask_BL, pooling_);
  return mean_of_blocks(read, blocks.weight_RC);
}

void SequenceClassifier::set_positions(const at::Tensor& table_PD) {
  embedding_->set_positions(table_PD);
}

at::Tensor SequenceClassifier::forward(const TokenBatch& batch, const StepRandom& random) const {
  const at::Tensor read =
      pooled(embedding_->forward(batch.tokens_BL, random, activations_), padding(batch), random);
  return head_->forward(pair_features_.empty() ? read : pair_features(read, pair_features_));
}

std::vector<std::pair<std::string, at::Tensor>> SequenceClassifier::parameter_list() const {
  // LibTorch refuses dots in a module's own name; files use PyTorch's "layers.0".
  static const std::regex layer("layers_([0-9]+)");
  std::vector<std::pair<std::string, at::Tensor>> list;
  for (const auto& item : named_parameters()) {
    list.emplace_back(std::regex_replace(item.key(), layer, "layers.$1"), item.value());
  }
  return list;
}

int64_t SequenceClassifier::num_parameters() const {
  int64_t count = 0;
  for (const auto& [name, parameter] : parameter_list()) count += parameter.numel();
  return count;
}

}  // namespace lra::models

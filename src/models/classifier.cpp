#include "models/classifier.h"

#include "layers/on_device.h"
#include "layers/pooling.h"
#include "models/receptive_field.h"
#include "ops/precision.h"

namespace lra::models {
namespace {

constexpr int64_t kClsPositions = 1;

}  // namespace

SequenceClassifier::SequenceClassifier(const TaskShape& shape, const ModelConfig& config,
                                       const mixers::LayerSpec& spec,
                                       const ConfigTable& mixer_config, uint64_t seed,
                                       const Execution& execution, Output output)
    : activations_(execution.activations),
      device_(execution.device),
      has_cls_(config.pooling == "cls"),
      group_cost_(config.receptive_field > 0 ? std::nullopt : execution.group_cost),
      receptive_field_(config.receptive_field),
      pooling_(config.pooling),
      pair_features_(shape.num_towers == 2 ? config.pair_features : "") {
  LRA_CHECK_LE(shape.num_towers, 2);
  const layers::Initializer init(seed, execution.device);
  const int64_t cls = has_cls_ ? kClsPositions : 0;
  const bool reads_places = output != Output::kClasses,
             hides = reads_places && output != Output::kPlaceClasses;
  LRA_CHECK(!reads_places || receptive_field_ == 0);
  embedding_ = add<Embedding>("embedding", init, config, shape, shape.length + cls, hides);
  const int64_t seen =
      receptive_field_ > 0 ? std::min(receptive_field_, shape.length) : shape.length;
  encoder_ =
      add<Encoder>("encoder", init, config, spec, mixer_config, seen + cls, execution.recompute);
  if (reads_places) {
    if (output == Output::kHiddenValues) predicted_values_ = shape.values.value();
    const int64_t scores = predicted_values_ ? 1 : hides ? shape.vocabulary : shape.num_classes;
    token_head_ = add<layers::Linear>("token_head", init, scores, config.embed_dim,
                                      layers::LinearWeights::kLecun);
    return;
  }
  const int64_t vectors = pair_features_.empty() ? 1 : pair_features_ == "nli" ? 4 : 2;
  head_ = add<ClassifierHead>("head", init, config, vectors * config.embed_dim, shape.num_classes);
}

Layout SequenceClassifier::layout(const ModelInput& input) const {
  if (!input.lengths_B.defined()) return {};
  const int64_t cls = has_cls_ ? kClsPositions : 0;
  return layout_of(input.lengths_B + cls, input.length() + cls, group_cost_, device_);
}

int64_t SequenceClassifier::num_positions(const ModelInput& input) const {
  const int64_t cls = has_cls_ ? kClsPositions : 0, length = input.length();
  if (input.lengths_B.defined() && group_cost_) {
    return models::num_positions(input.lengths_B + cls, length + cls, group_cost_);
  }
  if (!cuts(length)) return input.rows() * (length + cls);
  return num_blocks(input.lengths_B, input.rows(), length, receptive_field_) *
         (receptive_field_ + cls);
}

at::Tensor SequenceClassifier::pooled_blocks(const at::Tensor& x_BLD, const Padding& padding,
                                             const StepRandom& random) const {
  const TokenBlocks blocks = cut_into_blocks(x_BLD, padding.lengths_B, receptive_field_, has_cls_);
  const at::Tensor y_KLD = encoder_->forward(blocks.x_KLD, {blocks.padding}, random);
  return mean_of_blocks(layers::pool(y_KLD, blocks.padding.mask_BL, pooling_), blocks);
}

at::Tensor SequenceClassifier::pooled(const at::Tensor& y_BLD, const Layout& layout) const {
  if (layout.groups.empty()) return layers::pool(y_BLD, layout.padding.mask_BL, pooling_);
  std::vector<at::Tensor> read = layout.split(y_BLD);
  for (size_t g = 0; g < read.size(); ++g) {
    read[g] = layers::pool(read[g], layout.groups[g].padding.mask_BL, pooling_);
  }
  return at::cat(read).index_select(0, layout.places_B);
}

at::Tensor SequenceClassifier::at_places(const at::Tensor& y_BLD, const Layout& layout,
                                         const ModelInput& input) const {
  const at::Tensor y_TD = y_BLD.flatten(0, 1);
  const at::Tensor places_M =
      layout.places_of(input.places_M, input.length(), has_cls_ ? kClsPositions : 0);
  const at::Tensor read_MD = y_TD.index_select(0, places_M).to(ops::wide_type(y_TD));
  const at::Tensor scores = token_head_->forward(read_MD);
  if (!predicted_values_) return scores;
  return scores / predicted_values_->scale + predicted_values_->zero;
}

at::Tensor SequenceClassifier::classified(const at::Tensor& read_BD) const {
  return head_->forward(pair_features_.empty() ? read_BD
                                               : layers::pair_features(read_BD, pair_features_));
}

at::Tensor SequenceClassifier::read(const at::Tensor& y_BLD, const Layout& layout,
                                    const ModelInput& input) const {
  return token_head_ ? at_places(y_BLD, layout, input) : classified(pooled(y_BLD, layout));
}

void SequenceClassifier::set_positions(const at::Tensor& table_PD) {
  embedding_->set_positions(table_PD);
}

at::Tensor SequenceClassifier::forward(const ModelInput& input, const StepRandom& random) const {
  const Layout layout = this->layout(input);
  const at::Tensor x_BLD = embedding_->forward(input, random, activations_, layout);
  if (cuts(input.length())) return classified(pooled_blocks(x_BLD, layout.padding, random));
  return read(encoder_->forward(x_BLD, layout, random), layout, input);
}

}  // namespace lra::models

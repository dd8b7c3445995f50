// A whole model of the benchmark: embedding, encoder, pooling, classifier head.
//
// A task with two towers (retrieval) sends both documents through the same weights as one batch,
// without attention between them, and classifies features of the two pooled vectors.
//
// For masked pretraining (docs/pretraining.md) the same embedding and encoder predict hidden places
// instead, for a task that labels places (docs/diagnostics.md) those: a linear layer reads the
// encoder's output there.
#pragma once

#include "base/task_shape.h"
#include "models/embedding.h"
#include "models/encoder.h"
#include "models/head.h"
#include "models/model.h"
#include "ops/libtorch.h"

namespace lra::models {

// Execution settings of a model, as opposed to its definition.
struct Execution {
  // dtype of activations in embedding and encoder, float32 or bfloat16; parameters, pooled vectors
  // and logits are float32.
  at::ScalarType activations = at::kFloat;
  at::Device device = at::kCPU;  // of the parameters; meta: a model that is only counted
  bool recompute = false;  // activations of encoder blocks again in the backward pass: same bits
  // Rows of like length in groups of their own (models/layout.h), for the same results to rounding;
  // none: all rows as long as the longest.
  std::optional<int64_t> group_cost = kGroupCost;
};

// The prediction of a model.
enum class Output {
  kClasses,       // of each example: scores [B, num_classes]
  kPlaceClasses,  // of each labeled place: scores [M, num_classes]
  kHiddenTokens,  // of each hidden place: scores [M, vocabulary]
  kHiddenValues   // of each hidden place: the stored value, such as a gray level, [M, 1]
};

class SequenceClassifier : public Model {
 public:
  SequenceClassifier(const TaskShape& shape, const ModelConfig& config,
                     const mixers::LayerSpec& spec, const ConfigTable& mixer_config, uint64_t seed,
                     const Execution& execution = {}, Output output = Output::kClasses);

  at::Tensor forward(const ModelInput& input, const StepRandom& random) const override;
  int64_t num_positions(const ModelInput& input) const override;
  at::Device device() const override { return device_; }

  // Other encodings of positions than the model's own, for sequences it was not made for: [P, D], P
  // at least the longest input with CLS. Not part of parameter_list().
  void set_positions(const at::Tensor& table_PD);

  // Access for analyses.
  const Embedding& embedding() const { return *embedding_; }
  const Encoder& encoder() const { return *encoder_; }
  // Layout of L positions (+ 1 with CLS, always valid).
  Layout layout(const ModelInput& input) const;
  // The scores for what the encoder returns, if nothing is cut into blocks.
  at::Tensor read(const at::Tensor& y_BLD, const Layout& layout, const ModelInput& input) const;

 private:
  // True if a sequence of this many positions, without CLS, is cut into blocks.
  bool cuts(int64_t length) const { return receptive_field_ > 0 && length > receptive_field_; }
  // The encoder's output -> [B, D].
  at::Tensor pooled(const at::Tensor& y_BLD, const Layout& layout) const;
  // Encoded in blocks and read -> [B, D].
  at::Tensor pooled_blocks(const at::Tensor& x_BLD, const Padding& padding,
                           const StepRandom& random) const;
  at::Tensor at_places(const at::Tensor& y_BLD, const Layout& layout,
                       const ModelInput& input) const;
  // The scores of vectors [B, D].
  at::Tensor classified(const at::Tensor& read_BD) const;

  at::ScalarType activations_;
  at::Device device_;
  bool has_cls_;
  std::optional<int64_t> group_cost_;
  int64_t receptive_field_;              // 0: all tokens
  std::string pooling_, pair_features_;  // pair_features_ is empty with one tower
  std::shared_ptr<Embedding> embedding_;
  std::shared_ptr<Encoder> encoder_;
  std::optional<ValueInput> predicted_values_;  // if these are what the model predicts
  std::shared_ptr<ClassifierHead> head_;        // one of the two
  std::shared_ptr<layers::Linear> token_head_;
};

}  // namespace lra::models

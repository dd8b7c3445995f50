// A whole model of the benchmark: embedding, encoder, pooling, classifier head.
//
// A task with two towers (retrieval) sends both documents through the same weights as one batch,
// without attention between them, and classifies features of the two pooled vectors.
#pragma once

#include "base/task_shape.h"
#include "models/embedding.h"
#include "models/encoder.h"
#include "models/head.h"
#include "ops/libtorch.h"

namespace lra::models {

// A batch as a model takes it.
struct TokenBatch {
  at::Tensor
      tokens_BL;  // int32, right-padded with 0; with two towers, rows 2b and 2b + 1 belong together
  // int32, on the CPU whatever the device of the tokens: valid tokens per row; undefined: every
  // position is valid. The host decides by it whether there is a mask.
  at::Tensor lengths_B;
};

// How a model computes, apart from what it computes.
struct Execution {
  // What embedding and encoder hand on, float32 or bfloat16; parameters, pooled vectors and logits
  // are float32.
  at::ScalarType activations = at::kFloat;
  at::Device device = at::kCPU;  // of the parameters; meta: a model that is only counted
  bool recompute = false;  // activations of encoder blocks again in the backward pass: same bits
};

class SequenceClassifier : public torch::nn::Module {
 public:
  SequenceClassifier(const TaskShape& shape, const ModelConfig& config,
                     const mixers::MixerSpec& spec, const ConfigTable& mixer_config, uint64_t seed,
                     const Execution& execution = {});

  // -> logits [B, num_classes], float32.
  at::Tensor forward(const TokenBatch& batch, const StepRandom& random) const;

  // Other encodings of positions than the model's own, for sequences it was not made for: [P, D], P
  // at least the longest input with CLS. Not part of parameter_list().
  void set_positions(const at::Tensor& table_PD);

  // Names as in a PyTorch state dict: "encoder.layers.0.mixer.qkv.weight".
  std::vector<std::pair<std::string, at::Tensor>> parameter_list() const;
  int64_t num_parameters() const;
  // Where it was made and computes; tokens come there.
  at::Device device() const { return device_; }

 private:
  // Of L positions (+ 1 with CLS, always valid); nothing when nothing is padded.
  Padding padding(const TokenBatch& batch) const;
  // Encoded and read: [B, L, D] -> [B, D].
  at::Tensor pooled(const at::Tensor& x_BLD, const Padding& padding,
                    const StepRandom& random) const;

  at::ScalarType activations_;
  at::Device device_;
  bool has_cls_;
  int64_t receptive_field_;              // 0: all tokens
  std::string pooling_, pair_features_;  // pair_features_ is empty with one tower
  std::shared_ptr<Embedding> embedding_;
  std::shared_ptr<Encoder> encoder_;
  std::shared_ptr<ClassifierHead> head_;
};

}  // namespace lra::models

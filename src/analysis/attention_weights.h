// Attention weights of any model, defined by their effect.
//
// With queries and keys held fixed, the output of a head is linear in the values of the tokens:
// out_i = sum_j A_ij v_j. This A [S, S] is the head's attention, however it was computed: one
// softmax, several merged ones, sorted buckets, mixed blocks, random features. It is read off
// without knowing the mixer: the value projections are replaced by further channels of the input,
// and tokens whose values are unit vectors give E columns of A at a time. No more than some columns
// of one example exist at once.
//
// Reading off takes S / E forward passes of the mixer. Where it is one unrestricted
// softmax(scale q k^T), which shows in the operators that it calls, its rows are computed from q
// and k instead; columns that were read off must agree with them, or all are read off.
//
// A model whose heads weigh values with both signs (Linformer, whose values are projected along the
// length) has no attention weights between tokens and is refused: LayerFacts::attention_weights.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "models/model_config.h"
#include "ops/libtorch.h"

namespace lra::analysis {

// Part of the weights of all heads of one layer, for one example: queries first_query, ... and keys
// first_key, ...; S counts CLS, which is position 0.
struct WeightTile {
  int64_t first_query = 0, first_key = 0;
  at::Tensor weights_HQK;  // float32, contiguous, on the CPU
};

// Attention weights of every layer of one model, one example at a time.
class AttentionWeights {
 public:
  // Throws lra::Error for a model whose receptive field is bounded and for a sequence layer without
  // attention weights. The model must outlive this object; it must compute in float32. `name` is
  // the run in messages.
  AttentionWeights(const models::SequenceClassifier& model, const models::ModelConfig& config,
                   const mixers::LayerSpec& spec, std::string name);

  int64_t num_layers() const { return static_cast<int64_t>(model_.encoder().blocks().size()); }
  int64_t num_heads() const { return heads_; }
  bool has_cls() const { return has_cls_; }

  // Inputs [1, S, D] of the mixers of all layers, on the model's device. tokens int32 [1, L], of
  // any device, without padding, L >= 1.
  std::vector<at::Tensor> mixer_inputs(const at::Tensor& tokens_1L) const;

  // The sums of the weights of each query (A times a column of ones), [H, S], on the CPU.
  at::Tensor row_sums(int64_t layer, const at::Tensor& x_1SD) const;

  // Calls `visit` on tiles that cover every pair of query and key once. Throws lra::Error for
  // weights that are negative or not finite.
  void for_each_tile(int64_t layer, const at::Tensor& x_1SD,
                     const std::function<void(const WeightTile&)>& visit) const;

 private:
  const models::EncoderBlock& block(int64_t layer) const;

  at::Tensor apply(int64_t layer, const at::Tensor& x_1SD, const at::Tensor& values_CSE) const;
  at::Tensor unit_columns(int64_t layer, const at::Tensor& x_1SD, int64_t first,
                          int64_t count) const;
  void check(int64_t layer, const at::Tensor& weights) const;

  const models::SequenceClassifier& model_;
  std::string name_;
  bool has_cls_;
  int64_t heads_, head_dim_, model_dim_;
};

}  // namespace lra::analysis

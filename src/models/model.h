// A function from batches to class scores, with parameters and buffers by name: the object that is
// trained, evaluated and measured.
//
// Goals of the room `models`: one encoder, in which nothing but the sequence layer differs between
// models. Non-goals: decoders, text generation, pretrained weights of others.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layers/layer.h"
#include "layers/running_statistics.h"
#include "models/step_random.h"
#include "ops/libtorch.h"

namespace lra::models {

// A batch as a model takes it: tokens or values.
struct ModelInput {
  // int32, right-padded with 0; with two towers, rows 2b and 2b + 1 belong together.
  at::Tensor tokens_BL = {};
  // int32, always on the CPU: valid positions per row; undefined: every position is valid. It tells
  // the host whether there is a mask.
  at::Tensor lengths_B = {};
  at::Tensor values_BLC = {};  // float32, instead of tokens where the task has values
  // int64, ascending, on the device of the tokens: the places row * length + position that a model
  // predicts which reads places (Output in models/classifier.h); undefined for any other.
  at::Tensor places_M = {};

  int64_t rows() const { return (tokens_BL.defined() ? tokens_BL : values_BLC).size(0); }
  int64_t length() const { return (tokens_BL.defined() ? tokens_BL : values_BLC).size(1); }
};

struct Parameter {
  std::string name;  // as in a PyTorch state dict: "encoder.layers.0.mixer.qkv.weight"
  at::Tensor tensor;
  std::string group = {};  // "" is the main one: training/settings/group_config.h
};

// The loss of scores [N, C] against labels [N], as a sum or a mean over N, []: cross-entropy of
// classes (int64), or absolute error of values (float32; C is 1).
at::Tensor loss_of(const at::Tensor& scores_NC, const at::Tensor& labels_N,
                   at::Reduction::Reduction reduction);
// bool [N]: the score is highest at the label, or the value within half a unit of it.
at::Tensor are_right(const at::Tensor& scores_NC, const at::Tensor& labels_N);

// Settings of the training loss; evaluations use loss_of().
struct LossSettings {
  at::Tensor weights_C = {};   // float32: weight of the examples of each class; undefined: 1
  double label_smoothing = 0;  // share of the target distribution that is uniform over the classes
};
// The mean of PyTorch's cross_entropy(weight, label_smoothing), divided by N rather than by the sum
// of the weights, so that the losses of micro-batches add up to that of their batch.
at::Tensor loss_with(const LossSettings& settings, const at::Tensor& scores_NC,
                     const at::Tensor& labels_N);

struct BatchLoss {
  at::Tensor mean;     // [], differentiable: the mean over the labels
  at::Tensor correct;  // [], int64: how many are right
};

class Model : public layers::Layer {
 public:
  // -> logits [B, num_classes], float32; of a model that predicts hidden places, a row for each.
  virtual at::Tensor forward(const ModelInput& input, const StepRandom& random) const = 0;
  // Number of positions that forward() computes, padding and CLS included: from shapes and lengths
  // only, so that tokens and values may be on the device `meta`.
  virtual int64_t num_positions(const ModelInput& input) const {
    return input.rows() * input.length();
  }
  std::vector<Parameter> parameter_list() const;
  // Saved with the parameters but not trained: running statistics, random constants.
  std::vector<Parameter> buffer_list() const;
  // The layers whose buffers follow their inputs.
  std::vector<layers::RunningStatistics*> running_statistics() const;
  // True if code of a user's computes a part of it.
  bool has_python_classes() const;
  // The device on which it was made and computes; input is moved there.
  virtual at::Device device() const = 0;

  BatchLoss loss(const ModelInput& input, const at::Tensor& labels, const StepRandom& random,
                 const LossSettings& settings = {}) const;
  int64_t num_parameters() const;
};

}  // namespace lra::models

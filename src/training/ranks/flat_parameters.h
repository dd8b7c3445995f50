// All parameters and buffers of a model in one array, and the parameters' gradients and moments in
// three more of the same layout. Buffers of another dtype than the parameters (counters,
// permutations, complex numbers of Python classes) stay where they are.
//
// The optimizer is one pass over flat memory for each group of parameters, and the gradient norm
// one sum. The model's own tensors become views.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/model.h"

namespace lra::training {

// Purpose of the parameters: gradients and moments take three times their memory again.
enum class FlatUse { kTraining, kInference };

class FlatParameters {
 public:
  explicit FlatParameters(const models::Model& model, FlatUse use = FlatUse::kTraining)
      : FlatParameters(model.parameter_list(), model.buffer_list(), use) {}
  // Moves all of the parameters' dtype into the flat array: the parameters of the main group, those
  // of each other group in turn, then the buffers. Names and order within a group are kept.
  explicit FlatParameters(std::vector<models::Parameter> parameters,
                          const std::vector<models::Parameter>& buffers = {},
                          FlatUse use = FlatUse::kTraining);

  at::Tensor values;           // parameters, then buffers
  at::Tensor gradients, m, v;  // of the parameters; undefined for inference

  struct Part {
    std::string name;
    std::vector<int64_t> shape;
    int64_t offset, count;
  };
  // The parameters.
  std::span<const Part> parts() const { return std::span(parts_).first(num_parameters_); }
  // All that a checkpoint holds of a model: num_flat() views of `values`, then other buffers.
  std::vector<models::Parameter> saved() const;
  size_t num_flat() const { return tensors_.size(); }
  // All that steps change: values, m and v (undefined for inference), other buffers.
  std::vector<at::Tensor> state() const;
  bool weights_are_finite() const;
  // Takes over the values and other buffers of the same model's `from`.
  void copy_weights(const FlatParameters& from);

  // The parameters of one group.
  struct Segment {
    std::string group;
    int64_t offset, count;
  };
  const std::vector<Segment>& segments() const { return segments_; }

  // The model's own tensor, a view of `values`.
  const at::Tensor& tensor(size_t part) const { return tensors_[part].tensor; }
  // Sets all gradients to zero and makes sure that the model's tensors still point at the flat
  // array.
  void zero_gradients();
  // Between these two calls a parameter keeps the gradient that it is given, where it would add it
  // to the zeros of the flat array: on a GPU, one launch gathers them all.
  void release_gradients();
  void gather_gradients();

 private:
  at::Tensor gradient_view(size_t part) const;
  void lay_out();

  std::vector<models::Parameter> tensors_;  // of parts_
  std::vector<models::Parameter> other_buffers_;
  std::vector<Part> parts_;
  std::vector<Segment> segments_;
  size_t num_parameters_;
};

}  // namespace lra::training

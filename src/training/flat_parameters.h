// All parameters of a model in one array, and their gradients, moments alike in three more.
//
// The optimizer is one pass over flat memory, and the gradient norm one sum. The model's own
// tensors become views.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/libtorch.h"

namespace lra::training {

// What the parameters are for: gradients and moments take three times their memory again.
enum class FlatUse { kTraining, kInference };

class FlatParameters {
 public:
  // Moves the parameters into the flat array; `parameters` keeps its names and order.
  explicit FlatParameters(std::vector<std::pair<std::string, at::Tensor>> parameters,
                          FlatUse use = FlatUse::kTraining);

  at::Tensor values, gradients, m, v;  // all but the first undefined for inference

  struct Part {
    std::string name;
    std::vector<int64_t> shape;
    int64_t offset, count;
  };
  const std::vector<Part>& parts() const { return parts_; }
  // The model's own tensor, a view of `values`.
  const at::Tensor& tensor(size_t part) const { return parameters_[part].second; }
  // Sets all gradients to zero and makes sure that the model's tensors still point at the flat
  // array.
  void zero_gradients();

 private:
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  std::vector<Part> parts_;
};

}  // namespace lra::training

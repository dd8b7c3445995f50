// Tensors by name, as torch.classes return them to Python.
//
// Goals of the room `python`: layers and trained models as torch classes, built once and without
// copies of tensors. Non-goals: a second command line, functions that python/lra has no use for.
#pragma once

#include <torch/custom_class.h>

#include <string>
#include <vector>

#include "models/model.h"

namespace lra::python {

inline c10::Dict<std::string, at::Tensor> by_name(const std::vector<models::Parameter>& tensors) {
  c10::Dict<std::string, at::Tensor> dict;
  for (const models::Parameter& one : tensors) dict.insert(one.name, one.tensor);
  return dict;
}

}  // namespace lra::python

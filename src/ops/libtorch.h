// The LibTorch headers that all files share. GCC instantiates the templates that a header's
// functions call again in every file, even if the header is precompiled: 7 s per file for
// torch/torch.h, 4 s for these.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

namespace lra::ops {

// Names of the library that all operators use.
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

}  // namespace lra::ops

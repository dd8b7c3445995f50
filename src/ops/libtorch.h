// The headers of LibTorch that we share. GCC instantiates the templates that a header's functions
// call in every file anew, also when the header is precompiled: 7 s a file for torch/torch.h, 4 s
// for these.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

// Arguments and results of lra::convolution_silu as the kernels of any device take them.
#pragma once

#include "kernels/convolution/short_convolution.h"
#include "ops/dispatch.h"
#include "ops/even_rows.h"
#include "ops/precision.h"

namespace lra::ops {

using ConvolutionSiluGradients = std::tuple<Tensor, Tensor, Tensor>;

void check_convolution_silu(const Tensor& x, const MaybeTensor& mask, const Tensor& kernel,
                            const Tensor& bias, int64_t future);
// By other operators, for kernels of any width.
Tensor composed_convolution_silu(const Tensor& x, const MaybeTensor& mask, const Tensor& kernel,
                                 const Tensor& bias, int64_t future);
ConvolutionSiluGradients composed_convolution_silu_backward(const Tensor& grad, const Tensor& x,
                                                            const MaybeTensor& mask,
                                                            const Tensor& kernel,
                                                            const Tensor& bias, int64_t future);

struct ShortConvolutionArguments {
  ShortConvolutionArguments(const Tensor& x_in, const MaybeTensor& mask, const Tensor& kernel,
                            const Tensor& bias_in, int64_t future)
      : x(with_even_rows(x_in)),
        weights_KD(kernel.t().contiguous()),
        bias(bias_in.contiguous()),
        mask(mask),
        future(future) {
    check_convolution_silu(x_in, mask, kernel, bias_in, future);
  }
  // Points into the tensors.
  template <typename T>
  kernels::ShortConvolution<T> problem() const {
    using W = kernels::Wide<T>;
    return {.batch = x.size(0),
            .length = x.size(1),
            .channels = x.size(2),
            .width = weights_KD.size(0),
            .future = future,
            .row_stride = row_stride(x),
            .x = const_data<T>(x),
            .valid = mask_data(mask),
            .kernel = const_data<W>(weights_KD),
            .bias = const_data<W>(bias)};
  }
  Tensor x, weights_KD, bias;
  MaybeTensor mask;
  int64_t future;
};

struct ShortConvolutionResults {
  ShortConvolutionResults(const ShortConvolutionArguments& in, const Tensor& grad_in)
      : grad(grad_in.contiguous()),
        of_x(at::empty(in.x.sizes(), in.x.options())),
        of_parameters(
            at::empty({in.weights_KD.size(0) + 1, in.x.size(2)}, in.weights_KD.options())) {
    LRA_CHECK_EQ(grad_in.sizes(), in.x.sizes());
  }
  ConvolutionSiluGradients gradients() const {
    const int64_t width = of_parameters.size(0) - 1;
    return {of_x, of_parameters.narrow(0, 0, width).t().contiguous(), of_parameters[width]};
  }
  Tensor grad, of_x, of_parameters;  // of_parameters: [K + 1, D], of kernel and bias
};

}  // namespace lra::ops

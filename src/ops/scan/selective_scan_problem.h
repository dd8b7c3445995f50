// Tensors as a problem of kernels/scan/selective_scan.h, on any device.
#pragma once

#include "kernels/scan/selective_scan.h"
#include "ops/dispatch.h"
#include "ops/scan/selective_scan.h"

namespace lra::ops {

// Kernels of torch.ops.lra.selective_scan, or of its backward pass, from functions of the arguments
// as one.
template <auto kFunction>
auto selective_scan_kernel(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                           const Tensor& c, const Tensor& dt_bias, const MaybeTensor& bias,
                           const MaybeTensor& skip, bool reversed, const MaybeTensor& mask,
                           const MaybeTensor& frequency) {
  return kFunction({x, dt, a, b, c, dt_bias, tensor_or_empty(bias), tensor_or_empty(skip), reversed,
                    tensor_or_empty(mask), tensor_or_empty(frequency)});
}
template <auto kFunction>
auto selective_scan_backward_kernel(const Tensor& grad, const Tensor& x, const Tensor& dt,
                                    const Tensor& a, const Tensor& b, const Tensor& c,
                                    const Tensor& dt_bias, const MaybeTensor& bias,
                                    const MaybeTensor& skip, bool reversed, const MaybeTensor& mask,
                                    const MaybeTensor& starts, const MaybeTensor& frequency) {
  return kFunction(grad,
                   {x, dt, a, b, c, dt_bias, tensor_or_empty(bias), tensor_or_empty(skip), reversed,
                    tensor_or_empty(mask), tensor_or_empty(frequency)},
                   starts);
}

// The checked arguments of torch.ops.lra.selective_scan, contiguous, and the lengths in the mask.
struct SelectiveScanArguments {
  explicit SelectiveScanArguments(const SelectiveScanInput& in) : reversed(in.reversed) {
    check_selective_scan(in);
    x = in.x_BLD.contiguous();
    dt = in.dt_BLD.contiguous();
    a = in.a_ND.contiguous();
    b = in.b_BLGN.contiguous();
    c = in.c_BLGN.contiguous();
    dt_bias = in.dt_bias_D.contiguous();
    if (in.bias_ND.defined()) bias = in.bias_ND.contiguous();
    if (in.skip_D.defined()) skip = in.skip_D.contiguous();
    if (in.frequency_ND.defined()) frequency = in.frequency_ND.contiguous();
    lengths = lengths_of(optional_tensor(in.mask_BL));
  }

  // Points into this.
  template <typename T>
  kernels::SelectiveScan<T> problem() const {
    using W = kernels::Wide<T>;
    const auto optional = [](const Tensor& t) {
      return t.defined() ? t.const_data_ptr<W>() : nullptr;
    };
    return {.batch = x.size(0),
            .length = x.size(1),
            .channels = x.size(2),
            .states = a.size(0),
            .groups = b.size(2),
            .reversed = reversed,
            .x = const_data<T>(x),
            .raw_dt = const_data<T>(dt),
            .b = const_data<T>(b),
            .c = const_data<T>(c),
            .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr,
            .a = a.const_data_ptr<W>(),
            .frequency = optional(frequency),
            .bias = optional(bias),
            .dt_bias = dt_bias.const_data_ptr<W>(),
            .skip = optional(skip)};
  }

  Tensor x, dt, a, b, c, dt_bias, bias, skip, frequency, lengths;
  bool reversed;
};

// The gradients of x, dt, a, b, c, dt_bias, bias, skip and frequency, the last empty without one.
using SelectiveScanGradients =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// The backward pass for the gradient of y, with memory for its results. Needs the arguments while
// it lives.
class SelectiveScanResults {
 public:
  SelectiveScanResults(const SelectiveScanArguments& in, const Tensor& grad)
      : in_(in),
        grad_(grad.contiguous()),
        of_x_(at::empty_like(in.x)),
        of_dt_(at::empty_like(in.x)),
        of_b_(at::empty_like(in.b)),
        of_c_(at::empty_like(in.c)),
        of_parameters_(at::empty({(2 * in.b.size(3) + 2) * in.x.size(2)}, in.a.options())) {
    LRA_CHECK_EQ(grad.sizes(), in.x.sizes());
  }

  template <typename T>
  kernels::SelectiveScanBackward<T> problem() const {
    return {.problem = in_.problem<T>(),
            .grad = const_data<T>(grad_),
            .grad_x = mutable_data<T>(of_x_),
            .grad_dt = mutable_data<T>(of_dt_),
            .grad_b = mutable_data<T>(of_b_),
            .grad_c = mutable_data<T>(of_c_),
            .grad_parameters = of_parameters_.mutable_data_ptr<kernels::Wide<T>>()};
  }

  SelectiveScanGradients gradients() const {
    const int64_t channels = in_.x.size(2), pairs = in_.a.numel();
    const int64_t all = in_.b.size(3) * channels;
    const auto parts =
        of_parameters_.split_with_sizes({pairs, all - pairs, all, channels, channels});
    const auto rows = [&](const Tensor& t) { return t.view({-1, channels}); };
    return {of_x_,    of_dt_,         rows(parts[0]), of_b_,         of_c_,
            parts[3], rows(parts[2]), parts[4],       rows(parts[1])};
  }

 private:
  const SelectiveScanArguments& in_;
  const Tensor grad_, of_x_, of_dt_, of_b_, of_c_, of_parameters_;
};

}  // namespace lra::ops

// Tensors as problems of kernels/scan/gated_scan.h, on any device.
#pragma once

#include "kernels/scan/gated_scan.h"
#include "ops/dispatch.h"
#include "ops/scan/gated_scan.h"

namespace lra::ops {

// All of a problem but v, for contiguous a; the tensors must outlive it.
template <typename T>
kernels::GatedScan<T> gated_problem(const Tensor& a, int64_t reversed_channels,
                                    const Tensor& lengths) {
  return {.batch = a.size(0),
          .length = a.size(1),
          .channels = a.size(2),
          .reversed_channels = reversed_channels,
          .a = a.const_data_ptr<kernels::Wide<T>>(),
          .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr};
}

// torch.ops.lra.gated_scan: its arguments, checked and contiguous, and memory for its result h.
struct GatedScanForward {
  GatedScanForward(const Tensor& a_in, const Tensor& v_in, int64_t reversed_channels,
                   const MaybeTensor& mask)
      : reversed_channels(reversed_channels) {
    check_gated_scan(a_in, v_in, reversed_channels, mask);
    a = a_in.contiguous();
    v = v_in.contiguous();
    h = at::empty_like(v);
    lengths = lengths_of(mask);
  }

  template <typename T>
  kernels::GatedScan<T> problem() const {
    auto all = gated_problem<T>(a, reversed_channels, lengths);
    all.v = const_data<T>(v);
    return all;
  }

  int64_t reversed_channels;
  Tensor a, v, h, lengths;
};

// torch.ops.lra.gated_scan_backward: the same, with memory for the gradients of a and v.
struct GatedScanGradients {
  GatedScanGradients(const Tensor& grad_in, const Tensor& a_in, const Tensor& h_in,
                     int64_t reversed_channels, const MaybeTensor& mask)
      : reversed_channels(reversed_channels) {
    check_gated_scan(a_in, h_in, reversed_channels, mask);
    LRA_CHECK_EQ(grad_in.sizes(), h_in.sizes());
    grad = grad_in.contiguous();
    a = a_in.contiguous();
    h = h_in.contiguous();
    lengths = lengths_of(mask);
    of_a = at::empty_like(a);
    of_v = at::empty_like(h);
  }

  template <typename T>
  kernels::GatedScanBackward<T> problem() const {
    return {.problem = gated_problem<T>(a, reversed_channels, lengths),
            .h = const_data<T>(h),
            .grad = const_data<T>(grad),
            .grad_a = of_a.mutable_data_ptr<kernels::Wide<T>>(),
            .grad_v = mutable_data<T>(of_v)};
  }

  int64_t reversed_channels;
  Tensor grad, a, h, lengths, of_a, of_v;
};

}  // namespace lra::ops

// Tensors as problems of kernels/scan/state_scan.h, on any device.
#pragma once

#include "kernels/scan/state_scan.h"
#include "ops/dispatch.h"
#include "ops/scan/state_scan.h"

namespace lra::ops {

// All of a problem but v; `shape` is that of x, [B, L, K, 2, P]. The tensors must outlive it.
template <typename T>
kernels::StateScan<T> state_problem(at::IntArrayRef shape, const Tensor& a, const Tensor& lengths) {
  return {.batch = shape[0],
          .length = shape[1],
          .states = shape[4],
          .directions = shape[2],
          .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr,
          .a = a.const_data_ptr<kernels::Wide<T>>()};
}

// torch.ops.lra.state_scan: its arguments, checked and contiguous, and memory for its result x.
struct StateScanForward {
  StateScanForward(const Tensor& v_in, const Tensor& a_in, bool bidirectional,
                   const MaybeTensor& mask) {
    check_state_scan(v_in, a_in, mask);
    v = v_in.contiguous();
    a = a_in.contiguous();
    lengths = lengths_of(mask);
    x = at::empty({v.size(0), v.size(1), bidirectional ? 2 : 1, 2, v.size(3)}, v.options());
  }

  template <typename T>
  kernels::StateScan<T> problem() const {
    auto all = state_problem<T>(x.sizes(), a, lengths);
    all.v = const_data<T>(v);
    return all;
  }

  Tensor v, a, lengths, x;
};

// torch.ops.lra.state_scan_backward: the same, with memory for the gradients of v and a.
struct StateScanGradients {
  StateScanGradients(const Tensor& grad_in, const Tensor& x_in, const Tensor& a_in,
                     const MaybeTensor& mask)
      : grad(grad_in.contiguous()),
        x(x_in.contiguous()),
        a(a_in.contiguous()),
        lengths(lengths_of(mask)),
        of_v(at::empty({x.size(0), x.size(1), 2, x.size(4)}, x.options())),
        of_a(at::empty_like(a)) {
    LRA_CHECK_EQ(grad.sizes(), x.sizes());
  }

  template <typename T>
  kernels::StateScanBackward<T> problem() const {
    return {.problem = state_problem<T>(x.sizes(), a, lengths),
            .x = const_data<T>(x),
            .grad = const_data<T>(grad),
            .grad_v = mutable_data<T>(of_v),
            .grad_a = of_a.mutable_data_ptr<kernels::Wide<T>>()};
  }

  Tensor grad, x, a, lengths, of_v, of_a;
};

}  // namespace lra::ops

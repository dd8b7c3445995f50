// Tensors as a problem of kernels/scan/diagonal_scan.h, on any device.
#pragma once

#include "kernels/scan/diagonal_scan.h"
#include "ops/dispatch.h"
#include "ops/scan/diagonal_scan.h"

namespace lra::ops {

// The checked arguments of torch.ops.lra.diagonal_scan, contiguous, and the lengths in the mask.
struct DiagonalScanArguments {
  DiagonalScanArguments(const Tensor& x_in, const Tensor& a_in, const Tensor& c_in,
                        const MaybeTensor& skip_in, const MaybeTensor& mask)
      : x(x_in.contiguous()), a(a_in.contiguous()), c(c_in.contiguous()) {
    check_diagonal_scan(x, a, c, skip_in, mask);
    if (skip_in) skip = skip_in->contiguous();
    lengths = lengths_of(mask);
  }

  // Points into this.
  template <typename T>
  kernels::DiagonalScan<T> problem() const {
    using W = kernels::Wide<T>;
    return {.batch = x.size(0),
            .length = x.size(1),
            .channels = x.size(2),
            .modes = a.size(1),
            .planes = a.size(0),
            .directions = c.size(0),
            .x = const_data<T>(x),
            .lengths = lengths.defined() ? lengths.const_data_ptr<int32_t>() : nullptr,
            .a = a.const_data_ptr<W>(),
            .c = c.const_data_ptr<W>(),
            .skip = skip.defined() ? skip.const_data_ptr<W>() : nullptr};
  }

  Tensor x, a, c, skip, lengths;
};

}  // namespace lra::ops

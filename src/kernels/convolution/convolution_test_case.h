// Problems of a convolution for the tests of its kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "kernels/convolution/convolution.h"

namespace lra::kernels {

struct ConvolutionSizes {
  int64_t batch, length, channels, width, future;
  bool is_ragged;
};

// One problem with its gradients, in arrays of type T.
template <typename T>
struct ConvolutionCase {
  using W = Wide<T>;

  explicit ConvolutionCase(const ConvolutionSizes& s) : sizes(s) {
    RandomStream random(static_cast<uint64_t>(s.length * 1000 + s.channels * 10 + s.width));
    const auto fill = [&](auto& values, int64_t count) {
      values.resize(static_cast<size_t>(count));
      for (auto& value : values) value = static_cast<float>(random.normal());
    };
    fill(x, s.batch * s.length * s.channels);
    fill(grad, s.batch * s.length * s.channels);
    fill(kernel, s.width * s.channels);
    y.assign(x.size(), T(9.0f));
    grad_x = y;
    grad_kernel.assign(kernel.size(), 9);
    for (int64_t n = 0; s.is_ragged && n < s.batch * s.length; ++n) {
      valid.push_back(random.below(4) > 0);
    }
  }

  Convolution<T> problem() {
    const auto& s = sizes;
    return {s.batch,
            s.length,
            s.channels,
            s.width,
            s.future,
            x.data(),
            valid.empty() ? nullptr : valid.data(),
            kernel.data(),
            y.data()};
  }
  bool is_valid(int64_t item, int64_t t) const {
    if (t < 0 || t >= sizes.length) return false;
    return valid.empty() || valid[static_cast<size_t>(item * sizes.length + t)] != 0;
  }

  ConvolutionSizes sizes;
  std::vector<T> x, grad, y, grad_x;
  std::vector<W> kernel, grad_kernel;
  std::vector<uint8_t> valid;
};

}  // namespace lra::kernels

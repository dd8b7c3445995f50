// Initial weights, drawn from the counter generator: a function of the seed and of the order in
// which a model asks, the same on every machine, device and LibTorch version.
#pragma once

#include <cstdint>

#include "ops/libtorch.h"

namespace lra::mixers {

class Initializer {
 public:
  // On the device `meta` tensors have shapes alone: for counting what would not fit.
  explicit Initializer(uint64_t seed, at::Device device = at::kCPU)
      : seed_(seed), device_(device) {}

  at::Tensor zeros(at::IntArrayRef shape) { return at::zeros(shape, device_); }
  at::Tensor ones(at::IntArrayRef shape) { return at::ones(shape, device_); }
  // N(0, deviation^2).
  at::Tensor normal(at::IntArrayRef shape, double deviation);
  // Uniform in [-limit, limit).
  at::Tensor uniform(at::IntArrayRef shape, double limit);
  // Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) for a weight [rows,
  // columns].
  at::Tensor xavier(int64_t rows, int64_t columns);
  // Normal cut at two deviations, with variance 1 / columns after the cut (LeCun et al. 1998),
  // [rows, columns].
  at::Tensor lecun(int64_t rows, int64_t columns);
  // A key for anything else a layer draws.
  uint64_t next_key();
  // Where all of this is put, and whatever else a layer keeps.
  at::Device device() const { return device_; }

 private:
  template <typename Draw>
  at::Tensor filled(at::IntArrayRef shape, Draw draw);

  uint64_t seed_;
  at::Device device_;
  uint32_t count_ = 0;
};

}  // namespace lra::mixers

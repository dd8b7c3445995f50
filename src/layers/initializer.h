// Initial weights, drawn from the counter generator: a function of the seed and of the name that a
// parameter has in its model, the same on every machine, device and LibTorch version. They do not
// depend on the order in which a model is made, or on its other parameters.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "ops/libtorch.h"

namespace lra::layers {

// 1 / sqrt(n): the deviation of weights that add up n inputs.
inline double inverse_root(int64_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

class Initializer {
 public:
  // On the device `meta`, tensors only have shapes: for counting parameters that would not fit.
  explicit Initializer(uint64_t seed, at::Device device = at::kCPU)
      : seed_(seed), device_(device) {}

  // Initializer of the child `name`. Each parameter is drawn from its own initializer:
  // init.of("weight").xavier(rows, columns).
  Initializer of(std::string_view name) const;

  at::Tensor zeros(at::IntArrayRef shape) const { return at::zeros(shape, device_); }
  at::Tensor ones(at::IntArrayRef shape) const { return at::ones(shape, device_); }
  // N(0, deviation^2).
  at::Tensor normal(at::IntArrayRef shape, double deviation) const;
  // Uniform in [-limit, limit).
  at::Tensor uniform(at::IntArrayRef shape, double limit) const;
  // Uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010) for a weight [rows,
  // columns].
  at::Tensor xavier(int64_t rows, int64_t columns) const;
  // Normal cut at two deviations, with variance 1 / columns after the cut (LeCun et al. 1998),
  // [rows, columns].
  at::Tensor lecun(int64_t rows, int64_t columns) const;
  // Key for anything else that is drawn once under this name: derive_key(seed, kWeights, low,
  // high), the halves of the 64-bit FNV-1a hash of "encoder.layers.0.mixer.qkv.weight".
  uint64_t key() const;
  uint64_t seed() const { return seed_; }
  // The same on the CPU: for what is computed there, alike for every device.
  Initializer on_cpu() const { return Initializer(seed_).of(name_); }
  const std::string& name() const { return name_; }
  // The device of all these tensors, and of everything else a layer keeps.
  at::Device device() const { return device_; }

 private:
  template <typename Draw>
  at::Tensor filled(at::IntArrayRef shape, Draw draw) const;

  uint64_t seed_;
  at::Device device_;
  std::string name_;
};

}  // namespace lra::layers

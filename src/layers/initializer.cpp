#include "layers/initializer.h"

#include <cmath>

#include "base/rng.h"
#include "layers/on_device.h"

namespace lra::layers {

// Fills a new tensor with draw(stream), one stream per tensor.
template <typename Draw>
at::Tensor Initializer::filled(at::IntArrayRef shape, Draw draw) const {
  RandomStream stream(key());
  if (device_.is_meta()) return at::empty(shape, at::TensorOptions(at::kFloat).device(device_));
  at::Tensor t = at::empty(shape, at::kFloat);
  float* data = t.mutable_data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i) data[i] = static_cast<float>(draw(stream));
  return on_device(t, device_);
}

Initializer Initializer::of(std::string_view name) const {
  Initializer inner = *this;
  inner.name_ += (name_.empty() ? "" : ".") + std::string(name);
  return inner;
}

uint64_t Initializer::key() const {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a (Fowler, Noll and Vo)
  for (const char c : name_) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return derive_key(seed_, RandomUse::kWeights, static_cast<uint32_t>(hash),
                    static_cast<uint32_t>(hash >> 32));
}

at::Tensor Initializer::normal(at::IntArrayRef shape, double deviation) const {
  return filled(shape, [&](RandomStream& s) { return deviation * s.normal(); });
}

at::Tensor Initializer::uniform(at::IntArrayRef shape, double limit) const {
  return filled(shape, [&](RandomStream& s) { return limit * (2 * s.uniform() - 1); });
}

at::Tensor Initializer::xavier(int64_t rows, int64_t columns) const {
  return uniform({rows, columns}, std::sqrt(6.0 / static_cast<double>(rows + columns)));
}

at::Tensor Initializer::lecun(int64_t rows, int64_t columns) const {
  // A standard normal cut at +-2 has deviation 0.87962566.
  const double deviation = std::sqrt(1.0 / static_cast<double>(columns)) / 0.87962566103423978;
  return filled({rows, columns}, [&](RandomStream& s) {
    double x = s.normal();
    while (std::abs(x) > 2) x = s.normal();
    return deviation * x;
  });
}

}  // namespace lra::layers

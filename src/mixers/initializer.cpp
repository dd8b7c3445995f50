#include "mixers/initializer.h"

#include <cmath>

#include "base/rng.h"
#include "mixers/on_device.h"

namespace lra::mixers {

// Fills a new tensor with draw(stream), one stream per tensor.
template <typename Draw>
at::Tensor Initializer::filled(at::IntArrayRef shape, Draw draw) {
  RandomStream stream(next_key());
  if (device_.is_meta()) return at::empty(shape, at::TensorOptions(at::kFloat).device(device_));
  at::Tensor t = at::empty(shape, at::kFloat);
  float* data = t.mutable_data_ptr<float>();
  for (int64_t i = 0; i < t.numel(); ++i) data[i] = static_cast<float>(draw(stream));
  return on_device(t, device_);
}

uint64_t Initializer::next_key() { return derive_key(seed_, RandomUse::kWeights, count_++); }

at::Tensor Initializer::normal(at::IntArrayRef shape, double deviation) {
  return filled(shape, [&](RandomStream& s) { return deviation * s.normal(); });
}

at::Tensor Initializer::uniform(at::IntArrayRef shape, double limit) {
  return filled(shape, [&](RandomStream& s) { return limit * (2 * s.uniform() - 1); });
}

at::Tensor Initializer::xavier(int64_t rows, int64_t columns) {
  return uniform({rows, columns}, std::sqrt(6.0 / static_cast<double>(rows + columns)));
}

at::Tensor Initializer::lecun(int64_t rows, int64_t columns) {
  // A standard normal cut at +-2 has deviation 0.87962566.
  const double deviation = std::sqrt(1.0 / static_cast<double>(columns)) / 0.87962566103423978;
  return filled({rows, columns}, [&](RandomStream& s) {
    double x = s.normal();
    while (std::abs(x) > 2) x = s.normal();
    return deviation * x;
  });
}

}  // namespace lra::mixers

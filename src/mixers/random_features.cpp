#include "mixers/random_features.h"

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace lra::mixers {
namespace {

using Directions = std::vector<std::vector<double>>;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> gaussian(size_t width, RandomStream& stream) {
  std::vector<double> row(width);
  for (double& x : row) x = stream.normal();
  return row;
}

// A uniformly distributed orthonormal basis: Gram-Schmidt on Gaussian rows, each row cleared twice
// so that rounding leaves it orthogonal to the working precision.
Directions orthonormal_block(size_t width, RandomStream& stream) {
  Directions rows;
  while (rows.size() < width) {
    std::vector<double> row = gaussian(width, stream);
    for (int pass = 0; pass < 2; ++pass) {
      for (const auto& other : rows) {
        const double share = dot(row, other);
        for (size_t i = 0; i < width; ++i) row[i] -= share * other[i];
      }
    }
    const double norm = std::sqrt(dot(row, row));
    for (double& x : row) x /= norm;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

at::Tensor orthogonal_features(int64_t count, int64_t width, FeatureNorms norms, uint64_t key) {
  RandomStream stream(key);
  at::Tensor features = at::empty({count, width}, at::kFloat);
  float* out = features.mutable_data_ptr<float>();
  const auto columns = static_cast<size_t>(width);
  for (int64_t first = 0; first < count; first += width) {
    const Directions block = orthonormal_block(columns, stream);
    for (int64_t r = 0; r < std::min(width, count - first); ++r) {
      const std::vector<double> other = gaussian(columns, stream);
      const double norm = norms == FeatureNorms::kGaussian ? std::sqrt(dot(other, other))
                                                           : std::sqrt(static_cast<double>(width));
      for (const double x : block[static_cast<size_t>(r)]) *out++ = static_cast<float>(norm * x);
    }
  }
  return features;
}

}  // namespace lra::mixers

// Random directions of FAVOR+ (Choromanski et al. 2021, arXiv:2009.14794, sections 2.3 and 2.4).
#pragma once

#include <cstdint>

#include "ops/libtorch.h"

namespace lra::mixers {

enum class FeatureNorms {
  kGaussian,  // those of independent Gaussian vectors: exp(q . k) is estimated without bias
  kFixed,     // sqrt(width): a lower variance, and a bias
};

// Rows w_r [count, width], float32, a function of only the key. Within each block of `width` rows
// (the last may be cut) they are orthogonal, and the directions of a block are uniformly
// distributed; the norms are independent of the directions.
at::Tensor orthogonal_features(int64_t count, int64_t width, FeatureNorms norms, uint64_t key);

}  // namespace lra::mixers

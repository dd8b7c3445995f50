// Weights that are the distribution function of a normal distribution of the score, instead of a
// softmax (kernels::AttentionWeights::kLaplace).
#pragma once

#include <numbers>

#include "kernels/simd/simd.h"

namespace lra::kernels::LRA_ISA {

// erfc(z) for z >= 0, relative error 4e-7 where it is above 1e-6: the rational Chebyshev fit erfcc
// of Press et al., Numerical Recipes, section 6.2. NaN stays NaN.
inline Floats erfc_of_positive(Floats z) {
  const Floats one = broadcast(1.0f), t = one / multiply_add(z, broadcast(0.5f), one);
  Floats y = broadcast(0.17087277f);
  y = multiply_add(y, t, broadcast(-0.82215223f));
  y = multiply_add(y, t, broadcast(1.48851587f));
  y = multiply_add(y, t, broadcast(-1.13520398f));
  y = multiply_add(y, t, broadcast(0.27886807f));
  y = multiply_add(y, t, broadcast(-0.18628806f));
  y = multiply_add(y, t, broadcast(0.09678418f));
  y = multiply_add(y, t, broadcast(0.37409196f));
  y = multiply_add(y, t, broadcast(1.00002368f));
  y = multiply_add(y, t, broadcast(-1.26551223f));
  return t * exp2(subtract_product(y, z, z) * broadcast(std::numbers::log2e_v<float>));
}

// The weight of scores, 0.5 (1 + erf(u)), and its derivative by the score, sqrt(2) exp(-u^2), with
// u = (score - sqrt(1/2)) sqrt(2 pi). `scale` takes what it is called with to scores.
class LaplaceWeights {
 public:
  explicit LaplaceWeights(float scale) : factor_(broadcast(scale * kRootOfTwoPi)) {}

  Floats weight(Floats product) const {
    const Floats u = multiply_subtract(product, factor_, broadcast(kRootOfPi));
    const Floats tail = broadcast(0.5f) * erfc_of_positive(abs(u));
    return select(greater(u, zeros()), broadcast(1.0f) - tail, tail);
  }
  Floats slope(Floats product) const {
    const Floats u = multiply_subtract(product, factor_, broadcast(kRootOfPi));
    return broadcast(std::numbers::sqrt2_v<float>) *
           exp2(u * u * broadcast(-std::numbers::log2e_v<float>));
  }

 private:
  static constexpr float kRootOfPi = 1.77245385090551603f, kRootOfTwoPi = 2.50662827463100050f;
  Floats factor_;
};

}  // namespace lra::kernels::LRA_ISA

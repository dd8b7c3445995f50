#include "mixers/state_space.h"

#include "ops/test_tensors.h"

namespace lra::mixers {
namespace {

using at::Tensor;

// Eigenvalues can be right where eigenvectors are useless; only the product shows both.
TEST(LegsEigenpairs, AreThoseOfTheMatrix) {
  for (const int64_t states : {2, 8, 64, 256, 512}) {
    const auto [frequencies, re, im] = legs_eigenpairs(states);
    EXPECT_TRUE(frequencies.gt(0).all().item<bool>());
    const Tensor v = at::complex(re, im), s = legs_antisymmetric(states);
    const Tensor product =
        at::matmul(v * at::complex(at::zeros_like(frequencies), frequencies), v.t().conj());
    EXPECT_LE(ops::relative_error(2 * at::real(product), s), 1e-12) << states;
    EXPECT_LE(
        ops::relative_error(at::matmul(v.t().conj(), v).abs(), at::eye(states / 2, at::kDouble)),
        1e-12)
        << states;
  }
}

}  // namespace
}  // namespace lra::mixers

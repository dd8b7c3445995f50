#include "kernels/gemm/linear.h"

#include "base/error.h"

namespace lra::kernels {

void linear_rows(const LinearRows& problem) {
  LRA_CHECK(problem.w_depth == 1 || problem.w_column == 1);
  const Isa isa = choose(Op::kOuterProductsBf16);
  LRA_RETURN_IF_TILES(isa, linear_rows(problem));
  LRA_CHECK(has_tiles());
}

}  // namespace lra::kernels

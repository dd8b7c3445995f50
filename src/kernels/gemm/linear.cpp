#include "kernels/gemm/linear.h"

#include "base/error.h"

namespace lra::kernels {
namespace {

Isa choice() { return choose(Op::kOuterProductsBf16); }

}  // namespace

bool has_linear_rows() { return choice() == Isa::kAmx || choice() == Isa::kAmxEmulated; }

void linear_rows(const LinearRows& problem) {
  LRA_CHECK(has_linear_rows());
  LRA_CHECK(problem.w_depth == 1 || problem.w_column == 1);
  const Isa isa = choice();
  LRA_RETURN_IF_TILES(isa, linear_rows(problem));
}

}  // namespace lra::kernels

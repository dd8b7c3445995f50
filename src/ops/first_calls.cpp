// The first calls of the vector functions, by one thread, when this library is loaded.
//
// LibTorch takes exp, log and the like of float32 and float64 from MKL. When several threads make
// the first such call of a process at once, one of them at times gets another function: results
// off by 1e-4 in its share of the tensor, in about one process of a thousand (docs/numerics.md).
#include "ops/libtorch.h"

namespace lra::ops {
namespace {

[[maybe_unused]] const bool kCalled = [] {
  const at::NoGradGuard guard;
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::full({64}, 0.5, type);
    for (const auto function : {&at::exp, &at::expm1, &at::log, &at::log1p, &at::log2, &at::sqrt,
                                &at::tanh, &at::erf, &at::sin, &at::cos}) {
      (void)function(x);
    }
  }
  return true;
}();

}  // namespace
}  // namespace lra::ops

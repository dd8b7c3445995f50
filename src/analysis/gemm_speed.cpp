#include "analysis/gemm_speed.h"

#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "ops/linear.h"
#include "ops/precision.h"

namespace lra::analysis {
namespace {

constexpr int64_t kSize = 2048;
constexpr int kRepeats = 3;

double fastest_seconds(const std::function<void()>& product) {
  product();
  double seconds = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const Stopwatch watch;
    product();
    seconds = std::min(seconds, watch.seconds());
  }
  return seconds;
}

}  // namespace

double gemm_flops_per_s(bool bf16) {
  const torch::NoGradGuard no_grad;
  const auto options = at::TensorOptions(bf16 ? at::kBFloat16 : at::kFloat);
  const at::Tensor a = at::full({kSize, kSize}, 0.5, options), b = at::full_like(a, 0.25);
  at::Tensor c = at::empty_like(a);
  double seconds = fastest_seconds([&] { (void)ops::linear(a, b); });
  if (!ops::has_slow_products(a)) {
    seconds = std::min(seconds, fastest_seconds([&] { at::mm_out(c, a, b); }));
  }
  return 2.0 * kSize * kSize * kSize / seconds;
}

}  // namespace lra::analysis

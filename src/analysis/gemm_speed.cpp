#include "analysis/gemm_speed.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/wait_for.h"
#include "base/clock.h"
#include "ops/libtorch.h"
#include "ops/linear.h"
#include "ops/precision.h"

namespace lra::analysis {
namespace {

constexpr int64_t kCpuSize = 2048, kGpuSize = 8192;
constexpr int kRepeats = 3;

double fastest_seconds(at::Device device, const std::function<void()>& product) {
  product();
  wait_for(device);
  double seconds = 1e30;
  for (int i = 0; i < kRepeats; ++i) {
    const Stopwatch watch;
    product();
    wait_for(device);
    seconds = std::min(seconds, watch.seconds());
  }
  return seconds;
}

}  // namespace

double gemm_flops_per_s(bool bf16, at::Device device) {
  const at::NoGradGuard no_grad;
  const auto options = at::TensorOptions(bf16 ? at::kBFloat16 : at::kFloat).device(device);
  const int64_t size = device.is_cuda() ? kGpuSize : kCpuSize;
  const at::Tensor a = at::full({size, size}, 0.5, options), b = at::full_like(a, 0.25);
  at::Tensor c = at::empty_like(a);
  double seconds = fastest_seconds(device, [&] { (void)ops::linear(a, b); });
  if (!ops::has_slow_products(a)) {
    seconds = std::min(seconds, fastest_seconds(device, [&] { at::mm_out(c, a, b); }));
  }
  return 2.0 * std::pow(static_cast<double>(size), 3) / seconds;
}

}  // namespace lra::analysis

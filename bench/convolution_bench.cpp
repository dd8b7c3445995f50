// Convolution along the sequence, forward and backward, of x [B, L, D] in float32 with kernels of K
// lags: by Fourier transforms against direct sums, by which ops/long_convolution.cpp chooses, and
// against the library's transforms.
#include <cstdio>

#include "bench/side_by_side.h"
#include "kernels/convolution/transforms.h"
#include "ops/dispatch.h"
#include "ops/libtorch.h"

namespace lra {
namespace {

using at::Tensor;

constexpr int kRounds = 5;

struct Sizes {
  int64_t batch, length, channels, width;
};
constexpr Sizes kConvolutions[] = {{8, 1024, 128, 5},    {8, 1024, 128, 64},   {8, 1024, 128, 256},
                                   {8, 1024, 128, 512},  {8, 1024, 128, 1024}, {8, 1024, 128, 2047},
                                   {4, 4096, 64, 512},   {4, 4096, 64, 1024},  {4, 4096, 64, 2048},
                                   {1, 16384, 64, 1024}, {1, 16384, 64, 2048}};

kernels::Convolution<float> problem(const Sizes& s, const Tensor& x, const Tensor& kernel_KD,
                                    Tensor& y) {
  return {.batch = s.batch,
          .length = s.length,
          .channels = s.channels,
          .width = s.width,
          .future = s.width / 2,
          .x = ops::const_data<float>(x),
          .kernel = ops::const_data<float>(kernel_KD),
          .y = ops::mutable_data<float>(y)};
}

void directly(const Sizes& s, const Tensor& x, const Tensor& kernel_KD, const Tensor& grad) {
  Tensor y = at::empty_like(x), of_kernel = at::empty_like(kernel_KD);
  auto p = problem(s, x, kernel_KD, y);
  kernels::convolve(p);
  kernels::convolution_kernel_gradient(p, ops::const_data<float>(grad),
                                       ops::mutable_data<float>(of_kernel));
  p.x = ops::const_data<float>(grad);
  p.future = s.width - 1 - p.future;
  kernels::convolve(p);
}

void by_transforms(const Sizes& s, const Tensor& x, const Tensor& kernel_KD, const Tensor& grad) {
  Tensor y = at::empty_like(x), of_x = at::empty_like(x), of_kernel = at::empty_like(kernel_KD);
  const auto p = problem(s, x, kernel_KD, y);
  kernels::convolve_by_transforms(p);
  kernels::convolution_gradients_by_transforms(p, ops::const_data<float>(grad),
                                               ops::mutable_data<float>(of_x),
                                               ops::mutable_data<float>(of_kernel));
}

// The composed version, which serves devices without a kernel, on the CPU.
void call_composed(const char* name, std::vector<c10::IValue> stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxedForDispatchKey(
      c10::DispatchKey::CompositeImplicitAutograd, stack);
}

void by_library(const Sizes& s, const Tensor& x, const Tensor& kernel_KD, const Tensor& grad) {
  const int64_t future = s.width / 2;
  const Tensor kernel_DK = kernel_KD.t();
  call_composed("lra::convolution", {x, c10::IValue(), kernel_DK, future});
  call_composed("lra::convolution_backward",
                {grad, x, c10::IValue(), kernel_DK, future, c10::List<bool>({true, true})});
}

void measure(const Sizes& s) {
  const Tensor x = at::randn({s.batch, s.length, s.channels}), grad = at::randn_like(x);
  const Tensor kernel_KD = at::randn({s.width, s.channels});
  const auto ours = [&] { by_transforms(s, x, kernel_KD, grad); };
  const SideBySide direct = side_by_side(kRounds, ours, [&] { directly(s, x, kernel_KD, grad); });
  const SideBySide library =
      side_by_side(kRounds, ours, [&] { by_library(s, x, kernel_KD, grad); });
  std::printf(
      "%3ld x %5ld x %3ld, K %5ld: transforms %8.2f ms, direct %8.2f ms %6.2fx, library %8.2f "
      "ms %6.2fx\n",
      s.batch, s.length, s.channels, s.width, 1e3 * direct.ours_s, 1e3 * direct.theirs_s,
      direct.ratio(), 1e3 * library.theirs_s, library.ratio());
}

}  // namespace
}  // namespace lra

int main() {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  std::printf("convolution, forward and backward, float32, %d threads\n", at::get_num_threads());
  for (const auto& sizes : lra::kConvolutions) lra::measure(sizes);
}

// ops::linear against at::linear in float32 on all threads: forward, forward with GELU, and the
// training step (forward and backward). Target: 1.7 times the library at 2048^3 forward.
//
// GFLOP/s count 2 M K N per product: one forward, three for the training step.
#include <torch/torch.h>

#include <cstdio>

#include "bench/side_by_side.h"
#include "ops/linear.h"

namespace lra {
namespace {

using at::Tensor;

constexpr int kRounds = 7;

struct Layer {
  const char* what;
  int64_t m, k, n;
};

// Tokens times a layer of the released models (batch 32 of 1K bytes; batch 32 of 2K ListOps).
constexpr Layer kLayers[] = {{"square", 2048, 2048, 2048},
                             {"text: fc1 of the MLP", 32032, 256, 1024},
                             {"text: fc2 of the MLP", 32032, 1024, 256},
                             {"text: packed q, k, v", 32032, 256, 768},
                             {"listops: fc1 of the MLP", 64032, 512, 1024},
                             {"image: packed q, k, v", 65600, 128, 192}};

void print(const Layer& layer, const char* pass, int products, const SideBySide& times) {
  const double gflop = 2e-9 * static_cast<double>(products * layer.m * layer.k * layer.n);
  std::printf("%-26s %6ld x %4ld x %4ld  %-18s %7.0f %7.0f GFLOP/s  %5.2fx\n", layer.what, layer.m,
              layer.k, layer.n, pass, gflop / times.ours_s, gflop / times.theirs_s, times.ratio());
}

void measure(const Layer& layer) {
  Tensor x = at::randn({layer.m, layer.k}), w = at::randn({layer.n, layer.k}) * 0.02;
  Tensor b = at::randn({layer.n});
  const Tensor grad = at::randn({layer.m, layer.n});
  {
    const at::NoGradGuard no_grad;
    print(layer, "forward", 1,
          side_by_side(
              kRounds, [&] { ops::linear(x, w, b); }, [&] { at::linear(x, w, b); }));
    print(layer, "forward + GELU", 1,
          side_by_side(
              kRounds, [&] { ops::linear_gelu(x, w, b); },
              [&] { at::gelu(at::linear(x, w, b), "tanh"); }));
  }
  for (Tensor* t : {&x, &w, &b}) t->set_requires_grad(true);
  const auto step = [&](const Tensor& y) { torch::autograd::grad({y}, {x, w, b}, {grad}); };
  print(layer, "forward + backward", 3,
        side_by_side(
            kRounds, [&] { step(ops::linear(x, w, b)); }, [&] { step(at::linear(x, w, b)); }));
}

}  // namespace
}  // namespace lra

int main() {
  at::manual_seed(1);
  std::printf("linear layers, float32, %d threads, %s against at::linear\n", at::get_num_threads(),
              lra::ops::linear_choice().c_str());
  std::printf("%-26s %6s   %4s   %4s  %-18s %7s %7s\n", "layer", "M", "K", "N", "pass", "ours",
              "library");
  for (const auto& layer : lra::kLayers) lra::measure(layer);
}

// ops::linear against at::linear in float32: forward, forward with GELU, and the training step
// (forward and backward); the gradient of the weight alone, in bfloat16 too; the backward pass of
// layer normalization; and batch normalization against its definition in the library's operators.
// Target: 1.7 times the library at 2048^3 forward.
//
// GFLOP/s count 2 M K N per product: one forward, three for the training step.
#include <cstdio>

#include "bench/side_by_side.h"
#include "ops/libtorch.h"
#include "ops/linear.h"
#include "ops/pointwise/batch_norm.h"
#include "ops/pointwise/layer_norm.h"
#include "ops/product.h"

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
                             {"text: fc1, 4 of 4K bytes", 16384, 256, 1024},
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

void measure_weight_gradient(const Layer& layer) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::randn({layer.m, layer.k}).to(type);
    const Tensor grad = at::randn({layer.m, layer.n}).to(type);
    print(layer, type == at::kFloat ? "weight" : "weight, bfloat16", 1,
          side_by_side(
              kRounds, [&] { ops::sum_of_outer_products(grad, x); },
              [&] { at::mm(grad.t(), x).to(at::kFloat); }));
  }
}

void measure_layer_norm(int64_t tokens, int64_t width) {
  const Tensor w = at::randn({width}).set_requires_grad(true);
  const Tensor b = at::randn({width}).set_requires_grad(true);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::randn({tokens, width}).to(type).set_requires_grad(true);
    const Tensor grad = at::randn({tokens, width}).to(type);
    const Tensor ours = ops::layer_norm(x, w, b, 1e-6);
    const Tensor theirs = at::layer_norm(x, {width}, w, b, 1e-6);
    const auto backward = [&](const Tensor& y) {
      torch::autograd::grad({y}, {x, w, b}, {grad}, /*retain_graph=*/true);
    };
    const SideBySide times = side_by_side(
        kRounds, [&] { backward(ours); }, [&] { backward(theirs); });
    std::printf("layer norm, backward, %-8s %6ld x %4ld  %8.2f %8.2f ms  %5.2fx\n",
                type == at::kFloat ? "float32" : "bfloat16", tokens, width, 1e3 * times.ours_s,
                1e3 * times.theirs_s, times.ratio());
  }
}

Tensor composed_batch_norm(const Tensor& x, const Tensor& mask, const Tensor& w, const Tensor& b) {
  const Tensor valid = mask.to(at::kFloat).unsqueeze(2), count = valid.sum().clamp_min(1);
  const Tensor mean = (x * valid).sum(at::IntArrayRef{0, 1}) / count, centred = x - mean;
  const Tensor variance = (centred.square() * valid).sum(at::IntArrayRef{0, 1}) / count;
  return centred * (variance + 1e-5).rsqrt() * w + b;
}

// Forward and backward; the composed one in float32 always.
void measure_batch_norm(int64_t batch, int64_t length, int64_t width) {
  const Tensor w = at::randn({width}).set_requires_grad(true);
  const Tensor b = at::randn({width}).set_requires_grad(true);
  const Tensor mask = at::ones({batch, length}, at::kByte);
  const Tensor x = at::randn({batch, length, width}).set_requires_grad(true);
  const Tensor grad = at::randn({batch, length, width});
  const auto step = [&](const Tensor& y) { torch::autograd::grad({y}, {x, w, b}, {grad}); };
  const SideBySide times = side_by_side(
      kRounds, [&] { step(ops::batch_norm(x, mask, w, b, 1e-5).y); },
      [&] { step(composed_batch_norm(x, mask, w, b)); });
  std::printf("batch norm, both passes     %6ld x %4ld  %8.2f %8.2f ms  %5.2fx\n", batch * length,
              width, 1e3 * times.ours_s, 1e3 * times.theirs_s, times.ratio());
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
  for (const auto& layer : lra::kLayers) {
    lra::measure(layer);
    lra::measure_weight_gradient(layer);
  }
  lra::measure_layer_norm(16384, 256);
  lra::measure_layer_norm(32000, 64);
  lra::measure_batch_norm(32, 1024, 64);
  lra::measure_batch_norm(32, 1024, 256);
}

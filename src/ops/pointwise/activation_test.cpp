#include "ops/pointwise/activation.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

struct Case {
  at::Tensor (*ours)(const Tensor&);
  at::Tensor (*definition)(const Tensor&);
};
const Case kCases[] = {
    {sigmoid, [](const Tensor& x) { return x.sigmoid(); }},
    {closed_gate, [](const Tensor& x) { return 1 / (1 + x.exp()); }},
    {softplus, [](const Tensor& x) { return x.exp().log1p(); }},
    {positive, [](const Tensor& x) { return at::where(x.ge(0), x + 0.5, x.sigmoid()); }},
    {ops::exp, [](const Tensor& x) { return x.exp(); }},
    {fresh_share, [](const Tensor& x) { return (1 - (2 * x).exp()).sqrt(); }}};

TEST(Activation, AgreesWithItsDefinition) {
  for (const Case& one : kCases) {
    Tensor x = 4 * random_tensor({2, 5, 19}, 1);
    if (one.ours == fresh_share) x = -x.abs();
    const std::vector<Tensor> in = {x};
    const TensorFunction f = [&](const auto& x) { return one.ours(x[0]); };
    const TensorFunction want = [&](const auto& x) { return one.definition(x[0]); };
    expect_agrees(f, at::kFloat, want, in, {.value = 2e-6, .gradient = 3e-6});
    expect_agrees(f, at::kDouble, want, in, {.value = 1e-12, .gradient = 1e-11});
    expect_agrees_in_bf16(f, want, in, 1, {.value = 0x1p-8, .gradient = 0x1p-8});
    expect_gradient_is_slope(f, in);
  }
}

TEST(Activation, IsItsComposedVersion) {
  const Tensor x = -4 * random_tensor({5, 19}, 1).abs(), grad = random_tensor({5, 19}, 2);
  for (int64_t f = 0; f < 6; ++f) {
    const auto on = [&](c10::DispatchKey key) {
      return call_under(key, "lra::activation_backward", {grad, x, f})[0];
    };
    EXPECT_LE(
        relative_error(on(c10::DispatchKey::CompositeExplicitAutograd), on(c10::DispatchKey::CPU)),
        1e-12);
  }
}

// Gates begin at 0.
TEST(Activation, KnowsItsSlopeAtZero) {
  const double slopes[] = {0.25, -0.25, 0.5, 1, 1, 0};
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (size_t n = 0; n < std::size(kCases); ++n) {
      const Tensor x = at::zeros({3}, type).set_requires_grad(true);
      kCases[n].ours(x).sum().backward();
      EXPECT_TRUE(at::allclose(x.grad(), at::full({3}, slopes[n], type))) << n;
    }
  }
}

TEST(Activation, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = -random_tensor({1025, 57}, 1, at::kFloat).abs();
  for (const Case& one : kCases) {
    expect_same_bits_at_any_number_of_threads([&] {
      const auto d =
          differentiate([&](const auto& in) { return one.ours(in[0]); }, {x}, at::kFloat);
      return std::vector<Tensor>{d.value, d.gradients[0]};
    });
  }
}

}  // namespace
}  // namespace lra::ops

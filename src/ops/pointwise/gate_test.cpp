#include "ops/pointwise/gate.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

Tensor glu_definition(const std::vector<Tensor>& in) {
  const auto parts = in[0].chunk(2, -1);
  return parts[0] * parts[1].sigmoid();
}

TEST(Glu, AgreesWithItsDefinition) {
  for (const int64_t width : {2, 34, 256}) {
    const std::vector<Tensor> in = {4 * random_tensor({3, 7, width}, 1)};
    const auto f = [](const auto& x) { return ops::glu(x[0]); };
    expect_agrees(f, at::kFloat, glu_definition, in, {.value = 1e-6, .gradient = 1e-6});
    expect_agrees_in_bf16(f, glu_definition, in, 1, {.value = 0x1p-8, .gradient = 0x1p-8});
    expect_gradient_is_slope(f, in);
  }
}

TEST(Gate, AgreesWithItsDefinition) {
  const std::vector<Tensor> in = {random_tensor({2, 5, 19}, 1), 4 * random_tensor({2, 5, 19}, 2)};
  const auto f = [](const auto& x) { return ops::gate(x[0], x[1]); };
  expect_agrees(f, at::kFloat, [](const auto& x) { return x[0] * x[1].sigmoid(); }, in,
                {.value = 1e-6, .gradient = 1e-6});
  expect_gradient_is_slope(f, in);
}

TEST(Silu, AgreesWithItsDefinition) {
  const std::vector<Tensor> in = {4 * random_tensor({2, 5, 19}, 1), random_tensor({2, 5, 19}, 2)};
  const TensorFunction f = [](const auto& x) { return ops::silu(x[0], x[1]); };
  const TensorFunction alone = [](const auto& x) { return ops::silu(x[0]); };
  const TensorFunction want = [](const auto& x) { return at::silu(x[0]) * x[1]; };
  const Tolerance near{.value = 1e-6, .gradient = 1e-6};
  expect_agrees(f, at::kFloat, want, in, near);
  expect_agrees(
      alone, at::kFloat, [](const auto& x) { return at::silu(x[0]); }, {in[0]}, near);
  expect_agrees_in_bf16(f, want, in, 2, {.value = 0x1p-8, .gradient = 0x1p-8});
  expect_gradient_is_slope(f, in);
}

// Parts of longer rows are read in place, others are copied.
TEST(Gate, TakesViews) {
  const Tensor x = random_tensor({3, 4, 12}, 1, at::kFloat);
  for (const Tensor& t : {x.narrow(2, 3, 5), x.narrow(1, 1, 2), x.transpose(0, 1), x[0], x[0][1]}) {
    EXPECT_TRUE(at::equal(ops::silu(t, t), ops::silu(t.contiguous(), t.contiguous())));
    EXPECT_TRUE(at::equal(ops::gate(t, t), ops::gate(t.contiguous(), t.contiguous())));
    const auto gradient = [&](const Tensor& of) {
      const Tensor leaf = of.detach().set_requires_grad(true);
      return torch::autograd::grad({ops::silu(leaf, leaf).sum()}, {leaf})[0];
    };
    EXPECT_TRUE(at::equal(gradient(t), gradient(t.contiguous())));
  }
}

TEST(Gate, RefusesOtherShapes) {
  const Tensor x = random_tensor({2, 5}, 1);
  EXPECT_THROW(ops::glu(x), CheckFailure);
  EXPECT_THROW(ops::gate(x, random_tensor({2, 4}, 1)), CheckFailure);
}

TEST(Glu, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = random_tensor({1025, 3 * 2 * 29}, 1, at::kFloat);
  expect_same_bits_at_any_number_of_threads([&] {
    const auto d = differentiate([](const auto& in) { return ops::glu(in[0]); }, {x}, at::kFloat);
    return std::vector<Tensor>{d.value, d.gradients[0]};
  });
}

}  // namespace
}  // namespace lra::ops

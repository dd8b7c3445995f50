#include "ops/gate.h"

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

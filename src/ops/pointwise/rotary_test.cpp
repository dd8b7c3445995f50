#include "ops/pointwise/rotary.h"

#include "base/error.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

Tensor table_of(int64_t length, int64_t width, at::ScalarType type) {
  const Tensor angles = random_tensor({length, width / 2}, 7);
  return at::stack({angles.sin(), angles.cos()}, 2).flatten(1).to(type);
}

// Pairs as complex numbers.
Tensor definition(const Tensor& x, const Tensor& table) {
  const Tensor pairs = at::view_as_complex(table.unflatten(1, {-1, 2}).flip(2).contiguous());
  const Tensor turned =
      at::view_as_complex(x.unflatten(3, {-1, 2}).contiguous()) * pairs.unsqueeze(1);
  return at::view_as_real(turned).flatten(3);
}

TEST(Rotary, AgreesWithItsDefinition) {
  const std::vector<Tensor> in = {random_tensor({3, 7, 2, 10}, 1)};
  const TensorFunction want = [](const auto& x) {
    return definition(x[0], table_of(7, 10, at::kDouble));
  };
  const TensorFunction f = [](const auto& x) {
    return rotary(x[0],
                  table_of(7, 10, x[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
  };
  expect_agrees(f, at::kFloat, want, in, {.value = 1e-6, .gradient = 1e-6});
  expect_agrees(f, at::kDouble, want, in, {.value = 1e-14, .gradient = 1e-14});
  expect_agrees_in_bf16(f, want, in, 1, {.value = 0x1p-8, .gradient = 0x1p-8});
  expect_gradient_is_slope(f, in);
}

TEST(Rotary, ReadsPartsOfRowsInPlaceAndRefusesOtherShapes) {
  const Tensor rows = random_tensor({2, 5, 30}, 1, at::kFloat), table = table_of(5, 6, at::kFloat);
  const Tensor part = rows.narrow(2, 6, 12).unflatten(2, {2, 6});
  EXPECT_TRUE(at::equal(rotary(part, table), rotary(part.contiguous(), table)));
  EXPECT_THROW(rotary(part.narrow(3, 0, 5), table.narrow(1, 0, 5)), CheckFailure);
  EXPECT_THROW(rotary(part, table.narrow(0, 0, 4)), CheckFailure);
  EXPECT_THROW(rotary(part, table.to(at::kDouble)), CheckFailure);
}

TEST(Rotary, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = random_tensor({3, 301, 3, 14}, 1, at::kFloat);
  const Tensor table = table_of(301, 14, at::kFloat);
  expect_same_bits_at_any_number_of_threads([&] { return std::vector<Tensor>{rotary(x, table)}; });
}

}  // namespace
}  // namespace lra::ops

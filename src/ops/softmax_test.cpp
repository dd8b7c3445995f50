#include "ops/softmax.h"

#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

const TensorFunction kOurSoftmax = [](const std::vector<Tensor>& in) { return softmax(5 * in[0]); };
const TensorFunction kLibrarySoftmax = [](const std::vector<Tensor>& in) {
  return (5 * in[0]).softmax(-1);
};

TEST(Softmax, AgreesWithTheLibrary) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {3, 7}, {2, 3, 40, 65}}) {
    expect_agrees(kOurSoftmax, at::kFloat, kLibrarySoftmax, {random_tensor(shape, 1)});
    expect_agrees(kOurSoftmax, at::kDouble, kLibrarySoftmax, {random_tensor(shape, 1)},
                  {.value = 1e-13, .gradient = 1e-12});
  }
}

TEST(Softmax, OfBf16IsFloat32AndItsGradientIsNot) {
  const Tensor x = random_tensor({4, 33}, 2, at::kBFloat16).set_requires_grad(true);
  const Tensor y = softmax(x);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(y.detach(), x.detach().to(at::kFloat).softmax(-1)));
  EXPECT_EQ(torch::autograd::grad({y}, {x}, {loss_weights(y)})[0].scalar_type(), at::kBFloat16);
}

TEST(Softmax, GradientIsTheSlope) {
  expect_gradient_is_slope(kOurSoftmax, {random_tensor({3, 8}, 3)});
}

TEST(Softmax, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor x = random_tensor({3, 8, 77, 77}, 4, at::kFloat).set_requires_grad(true);
  expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
    const Tensor y = softmax(x);
    return {y.detach(), torch::autograd::grad({y}, {x}, {loss_weights(y)})[0]};
  });
}

}  // namespace
}  // namespace lra::ops

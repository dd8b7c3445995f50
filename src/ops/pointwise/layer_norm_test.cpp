#include "ops/pointwise/layer_norm.h"

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

const TensorFunction kOurs = [](const std::vector<Tensor>& in) {
  return layer_norm(in[0], in[1], in[2], 1e-6);
};
const TensorFunction kLibrary = [](const std::vector<Tensor>& in) {
  return at::layer_norm(in[0], in[1].sizes(), in[1], in[2], 1e-6);
};

std::vector<Tensor> norm_inputs(const std::vector<int64_t>& shape) {
  return {random_tensor(shape, 1), random_tensor({shape.back()}, 2),
          random_tensor({shape.back()}, 3)};
}

TEST(LayerNorm, AgreesWithTheLibrary) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 5}, {2, 7, 64}, {4, 100, 33}, {1, 300, 16}, {600, 8}}) {
    SCOPED_TRACE(testing::Message() << shape);
    expect_agrees(kOurs, at::kFloat, kLibrary, norm_inputs(shape));
    expect_agrees(kOurs, at::kDouble, kLibrary, norm_inputs(shape),
                  {.value = 1e-12, .gradient = 1e-11});
    expect_agrees_in_bf16(kOurs, kLibrary, norm_inputs(shape), 1,
                          {.value = 0x1p-8, .gradient = 0x1p-8});
  }
}

TEST(LayerNorm, TakesStridedInputsAndGradients) {
  const auto turned = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      return f({in[0].transpose(0, 1), in[1], in[2]}).transpose(1, 2);
    };
  };
  expect_agrees(turned(kOurs), at::kFloat, turned(kLibrary), norm_inputs({6, 9, 20}));
}

TEST(LayerNorm, GradientIsTheSlope) { expect_gradient_is_slope(kOurs, norm_inputs({3, 4, 11})); }

TEST(LayerNorm, AddsTheGradientsOfManyRowsUpInFloat32) {
  // In bfloat16 a sum of ones would stop at 256.
  const Tensor x = random_tensor({4, 1250, 3}, 7, at::kBFloat16).set_requires_grad(true);
  const Tensor w = at::ones({3}).set_requires_grad(true),
               b = at::zeros({3}).set_requires_grad(true);
  layer_norm(x, w, b, 1e-6).sum(at::kFloat).backward();
  EXPECT_TRUE(at::equal(b.grad(), at::full({3}, 5000.0f)));
}

TEST(LayerNorm, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = random_tensor({5, 301, 64}, 4, type).set_requires_grad(true);
    const Tensor w = random_tensor({64}, 5, at::kFloat).set_requires_grad(true);
    const Tensor b = random_tensor({64}, 6, at::kFloat).set_requires_grad(true);
    expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
      const Tensor y = layer_norm(x, w, b, 1e-6);
      const auto grads = torch::autograd::grad({y}, {x, w, b}, {loss_weights(y)});
      return {y.detach(), grads[0], grads[1], grads[2]};
    });
  }
}

}  // namespace
}  // namespace lra::ops

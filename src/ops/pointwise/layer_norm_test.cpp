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

// One layer's use of a norm and of the stream that it is of.
TEST(LayerNorm, AddsTheGradientOfTheStream) {
  const TensorFunction ours = [](const std::vector<Tensor>& in) {
    const auto [norm, stream] = layer_norm_of_stream(in[0], in[1], in[2], 1e-6);
    return norm.square() + stream * 3;
  };
  const TensorFunction library = [](const std::vector<Tensor>& in) {
    return kLibrary(in).square() + in[0] * 3;
  };
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 5}, {2, 7, 64}, {4, 100, 33}}) {
    expect_agrees(ours, at::kFloat, library, norm_inputs(shape));
    expect_agrees_in_bf16(ours, library, norm_inputs(shape), 1);
  }
  expect_gradient_is_slope(ours, norm_inputs({3, 4, 11}));
  const auto strided = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) { return f({in[0].transpose(0, 1), in[1], in[2]}); };
  };
  expect_agrees(strided(ours), at::kFloat, strided(library), norm_inputs({6, 9, 20}));
}

// A gradient of one of the two alone.
TEST(LayerNorm, TakesTheNormOrTheStreamAlone) {
  std::vector<Tensor> in;
  for (const Tensor& t : norm_inputs({4, 12})) in.push_back(t.to(at::kFloat).requires_grad_());
  const auto both = layer_norm_of_stream(in[0], in[1], in[2], 1e-6);
  const Tensor of_norm = torch::autograd::grad({both.first}, {in[0]}, {loss_weights(both.first)},
                                               /*retain_graph=*/true)[0];
  const Tensor y = layer_norm(in[0], in[1], in[2], 1e-6);
  EXPECT_TRUE(at::equal(of_norm, torch::autograd::grad({y}, {in[0]}, {loss_weights(y)})[0]));
  const Tensor of_stream = torch::autograd::grad({both.second.sum()}, {in[0]})[0];
  EXPECT_TRUE(at::equal(of_stream, at::ones_like(in[0])));
}

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

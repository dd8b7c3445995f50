#include "ops/pointwise/batch_norm.h"

#include "ops/dispatch.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr double kEps = 1e-5;

Tensor valid_mask(at::IntArrayRef shape) { return random_tensor(shape, 9).gt(-0.5).to(at::kByte); }

TensorFunction normed(const Tensor& mask) {
  return [mask](const std::vector<Tensor>& in) {
    return batch_norm(in[0], mask, in[1], in[2], kEps).y;
  };
}

// The definition, which autograd follows, on the valid rows alone.
TensorFunction batch_norm_definition(const Tensor& mask) {
  return [mask](const std::vector<Tensor>& in) {
    const Tensor valid = mask.flatten().to(at::kBool), x = in[0].flatten(0, -2);
    const Tensor rows = x.index({valid}), mean = rows.mean(0);
    const Tensor y = (x - mean) / ((rows - mean).square().mean(0) + kEps).sqrt() * in[1] + in[2];
    return at::where(valid.unsqueeze(1), y, 0).view(in[0].sizes());
  };
}

std::vector<Tensor> batch_norm_inputs(const std::vector<int64_t>& shape) {
  return {3 * random_tensor(shape, 1) + 1, random_tensor({shape.back()}, 2),
          random_tensor({shape.back()}, 3)};
}

TEST(BatchNorm, AgreesWithItsDefinition) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 5, 4}, {2, 7, 64}, {4, 100, 33}, {1, 300, 16}, {600, 8}}) {
    const std::vector<int64_t> positions(shape.begin(), shape.end() - 1);
    for (const bool is_padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape << ", padded " << is_padded);
      const Tensor all = at::ones(positions, at::kByte);
      const Tensor mask = is_padded ? valid_mask(positions) : Tensor();
      const TensorFunction want = batch_norm_definition(is_padded ? mask : all);
      expect_agrees(normed(mask), at::kFloat, want, batch_norm_inputs(shape));
      expect_agrees(normed(mask), at::kDouble, want, batch_norm_inputs(shape),
                    {.value = 1e-12, .gradient = 1e-10});
      expect_agrees_in_bf16(normed(mask), want, batch_norm_inputs(shape), 1,
                            {.value = 0x1p-7, .gradient = 0x1p-6});
    }
  }
}

TEST(BatchNorm, GradientIsTheSlope) {
  expect_gradient_is_slope(normed(valid_mask({3, 9})), batch_norm_inputs({3, 9, 11}));
}

// The composed version serves devices without a kernel.
TEST(BatchNorm, ComposedFromTheLibraryIsTheSame) {
  const Tensor x = batch_norm_inputs({3, 9, 11})[0], weight = batch_norm_inputs({3, 9, 11})[1];
  const Tensor bias = batch_norm_inputs({3, 9, 11})[2], grad = random_tensor({3, 9, 11}, 4);
  for (const Tensor& mask : {Tensor(), valid_mask({3, 9})}) {
    const c10::IValue valid = mask.defined() ? c10::IValue(mask) : c10::IValue();
    const auto on = [&](c10::DispatchKey key) {
      auto all = call_under(key, "lra::batch_norm", {x, valid, weight, bias, kEps});
      const auto grads = call_under(key, "lra::batch_norm_backward",
                                    {grad, x, valid, all[1], all[2], all[3], weight, kEps, grad});
      all.insert(all.end(), grads.begin(), grads.end());
      return all;
    };
    const auto kernel = on(c10::DispatchKey::CPU),
               library = on(c10::DispatchKey::CompositeExplicitAutograd);
    for (size_t i = 0; i < kernel.size(); ++i) {
      EXPECT_LE(relative_error(library[i], kernel[i]), 1e-12) << i;
    }
  }
}

TEST(BatchNorm, GivesTheSameBitsAtAnyNumberOfThreads) {
  const Tensor mask = valid_mask({5, 301});
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = random_tensor({5, 301, 64}, 4, type).set_requires_grad(true);
    const Tensor w = random_tensor({64}, 5, at::kFloat).set_requires_grad(true);
    const Tensor b = random_tensor({64}, 6, at::kFloat).set_requires_grad(true);
    expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
      const auto values = batch_norm(x, mask, w, b, kEps);
      const auto grads = torch::autograd::grad({values.y}, {x, w, b}, {loss_weights(values.y)});
      return {values.y.detach(), values.mean, values.variance, grads[0], grads[1], grads[2]};
    });
  }
}

}  // namespace
}  // namespace lra::ops

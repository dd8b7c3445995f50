#include "ops/pointwise/row_norm.h"

#include "base/error.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr double kEps = 1e-5;

TensorFunction norm_of(bool centered) {
  return [=](const std::vector<Tensor>& in) { return row_norm(in[0], in[1], kEps, centered); };
}
TensorFunction definition_of(bool centered) {
  return [=](const std::vector<Tensor>& in) {
    const Tensor x = centered ? in[0] - in[0].mean(-1, true) : in[0];
    return x / (x.square().mean(-1, true) + kEps).sqrt() * in[1];
  };
}

TEST(RowNorm, AgreesWithItsDefinition) {
  for (const bool centered : {false, true}) {
    const auto f = norm_of(centered), want = definition_of(centered);
    for (const auto& [rows, groups, width] :
         {std::tuple{3, 1, 5}, {300, 3, 16}, {70, 4, 33}, {5, 2, 3}}) {
      SCOPED_TRACE(testing::Message() << rows << " " << groups << " " << width << " " << centered);
      const std::vector<Tensor> in = {random_tensor({2, rows, groups, width}, 1),
                                      random_tensor({groups, width}, 2)};
      expect_agrees(f, at::kFloat, want, in, {.value = 2e-6, .gradient = 5e-6});
      expect_agrees(f, at::kDouble, want, in, {.value = 1e-12, .gradient = 1e-11});
      expect_agrees_in_bf16(f, want, in, 1, {.value = 0x1p-8, .gradient = 0x1p-8});
      const std::vector<Tensor> alike = {in[0], in[1][0]};
      expect_agrees(f, at::kFloat, want, alike, {.value = 2e-6, .gradient = 5e-6});
    }
    expect_gradient_is_slope(f, {random_tensor({2, 3, 2, 7}, 3), random_tensor({2, 7}, 4)});
  }
}

TEST(RowNorm, IsItsComposedVersion) {
  const Tensor x = random_tensor({4, 3, 2, 9}, 1), grad = random_tensor({4, 3, 2, 9}, 2);
  for (const Tensor& weight : {random_tensor({2, 9}, 3), random_tensor({9}, 3)}) {
    for (const bool centered : {false, true}) {
      const auto on = [&](c10::DispatchKey key) {
        auto all = call_under(key, "lra::row_norm_forward", {x, weight, kEps, centered});
        const auto grads = call_under(key, "lra::row_norm_backward",
                                      {grad, x, all[1], all[2], weight, centered, grad});
        all.insert(all.end(), grads.begin(), grads.end());
        return all;
      };
      const auto kernel = on(c10::DispatchKey::CPU),
                 library = on(c10::DispatchKey::CompositeExplicitAutograd);
      for (size_t i = 0; i < kernel.size(); ++i) {
        EXPECT_LE((library[i] - kernel[i]).abs().max().item<double>(), 1e-12) << i;
      }
    }
  }
}

TEST(RowNorm, TakesViewsAndRefusesOtherShapes) {
  const Tensor x = random_tensor({3, 4, 12}, 1, at::kFloat), ones = at::ones({12});
  const Tensor turned = x.transpose(0, 1);
  EXPECT_TRUE(at::equal(row_norm(turned, ones, kEps), row_norm(turned.contiguous(), ones, kEps)));
  EXPECT_THROW(row_norm(x, at::ones({11}), kEps), CheckFailure);
  EXPECT_THROW(row_norm(x, at::ones({3, 12}), kEps), CheckFailure);
  EXPECT_THROW(row_norm(x, ones.to(at::kDouble), kEps), CheckFailure);
}

TEST(RowNorm, GivesTheSameBitsAtAnyNumberOfThreads) {
  const std::vector<Tensor> in = {random_tensor({5, 301, 3, 40}, 1, at::kFloat),
                                  random_tensor({3, 40}, 2, at::kFloat)};
  expect_same_bits_at_any_number_of_threads([&] {
    const auto d = differentiate(norm_of(true), in, at::kFloat);
    return std::vector<Tensor>{d.value, d.gradients[0], d.gradients[1]};
  });
}

}  // namespace
}  // namespace lra::ops

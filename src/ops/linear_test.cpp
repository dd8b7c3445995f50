#include "ops/linear.h"

#include <malloc.h>

#include "kernels/choice.h"
#include "ops/dispatch.h"
#include "ops/product.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

struct Size {
  int64_t m, k, n;
};
constexpr Size kSizes[] = {{1, 1, 1},    {1, 7, 5},      {3, 17, 33},
                           {65, 64, 96}, {127, 250, 10}, {523, 600, 33}};

const TensorFunction kOurLinear = [](const std::vector<Tensor>& in) {
  return ops::linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor());
};
const TensorFunction kLibraryLinear = [](const std::vector<Tensor>& in) {
  return at::linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor());
};

TEST(Linear, AgreesWithTheLibraryAtOddSizes) {
  for (const auto& [m, k, n] : kSizes) {
    SCOPED_TRACE(testing::Message() << "M " << m << " K " << k << " N " << n);
    expect_agrees(kOurLinear, at::kFloat, kLibraryLinear,
                  {random_tensor({m, k}, 1), random_tensor({n, k}, 2), random_tensor({n}, 3)});
  }
}

TEST(Linear, WorksWithoutBias) {
  for (const auto& [m, k, n] : kSizes) {
    expect_agrees(kOurLinear, at::kFloat, kLibraryLinear,
                  {random_tensor({m, k}, 4), random_tensor({n, k}, 5)});
  }
}

TEST(Linear, KeepsLeadingAxes) {
  const std::vector<Tensor> inputs = {random_tensor({2, 5, 12}, 6), random_tensor({9, 12}, 7),
                                      random_tensor({9}, 8)};
  EXPECT_EQ(ops::linear(inputs[0], inputs[1]).sizes(), (std::vector<int64_t>{2, 5, 9}));
  expect_agrees(kOurLinear, at::kFloat, kLibraryLinear, inputs);
}

TEST(Linear, TakesStridedInputsAndWeights) {
  const auto strided = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      return f({in[0].transpose(0, 1), in[1].t(), in[2]});
    };
  };
  expect_agrees(strided(kOurLinear), at::kFloat, strided(kLibraryLinear),
                {random_tensor({5, 3, 12}, 9), random_tensor({12, 7}, 10), random_tensor({7}, 11)});
}

// bfloat16 has kernels of its own, which take x and the weight with the strides that they have.
TEST(Linear, TakesAnyStridesInBf16) {
  const at::NoGradGuard no_grad;
  const Tensor all = random_tensor({40, 40}, 20, at::kBFloat16);
  const auto every_other = [&](int64_t rows, int64_t columns) {
    return all.slice(0, 0, 40, 2).slice(1, 0, 40, 2).narrow(0, 0, rows).narrow(1, 0, columns);
  };
  const std::vector<std::pair<Tensor, Tensor>> cases = {
      {all.t(), all},
      {all, all.t()},
      {every_other(5, 7), every_other(3, 7)},
      {all.narrow(1, 3, 9), all.narrow(1, 4, 9)},
      {every_other(1, 1), every_other(1, 1)},
      {all.narrow(0, 0, 1).expand({6, 40}), all},
      {at::empty({5, 0}, all.options()), at::empty({3, 0}, all.options())}};
  for (const auto& [x, w] : cases) {
    const Tensor wide = at::linear(x.to(at::kFloat), w.to(at::kFloat));
    EXPECT_LE(relative_error(ops::linear(x, w).to(at::kFloat), wide), 0x1p-8) << x.sizes();
  }
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  const auto ones = [](at::IntArrayRef shape) { return at::ones(shape, at::kBFloat16); };
  EXPECT_ANY_THROW(ops::linear(ones({4, 64}), ones({8, 32})));
  EXPECT_ANY_THROW(ops::linear_gelu(ones({4, 64}), ones({8, 64}), at::ones({1})));
  EXPECT_ANY_THROW(sum_of_outer_products_and_rows(ones({9, 4}), ones({5, 5})));
}

TEST(Linear, TakesAStridedGradient) {
  const auto transposed = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) { return f(in).transpose(0, 2); };
  };
  expect_agrees(
      transposed(kOurLinear), at::kFloat, transposed(kLibraryLinear),
      {random_tensor({2, 5, 12}, 12), random_tensor({9, 12}, 13), random_tensor({9}, 14)});
}

TEST(Linear, GradientIsTheSlope) {
  expect_gradient_is_slope(kOurLinear, {random_tensor({2, 5, 12}, 15), random_tensor({9, 12}, 16),
                                        random_tensor({9}, 17)});
}

TEST(Linear, RunsFloat64OnTheLibraryBitForBit) {
  const Tensor x = random_tensor({33, 65}, 18), w = random_tensor({17, 65}, 19);
  EXPECT_TRUE(at::equal(ops::linear(x, w), at::linear(x, w)));
}

TEST(Linear, RoundsOnceInBf16) {
  for (const auto& [m, k, n] : kSizes) {
    SCOPED_TRACE(testing::Message() << "M " << m << " K " << k << " N " << n);
    const std::vector<Tensor> inputs = {random_tensor({m, k}, 1), random_tensor({n, k}, 2),
                                        random_tensor({n}, 3)};
    // The weight and the result are rounded once each: 2^-9 at most, 2^-9.8 on average.
    expect_agrees_in_bf16(kOurLinear, kLibraryLinear, inputs, 1,
                          {.value = 0x1p-8, .gradient = 0x1p-8});
    const Tensor x = inputs[0].to(at::kBFloat16), w = inputs[1].to(at::kFloat);
    const Tensor b = inputs[2].to(at::kFloat);
    const Tensor expected = at::gelu(at::linear(x.to(at::kDouble), inputs[1], inputs[2]), "tanh");
    const Tensor actual = ops::linear_gelu(x, w, b);
    EXPECT_EQ(actual.scalar_type(), at::kBFloat16);
    EXPECT_LE(normwise_error(actual, expected, 0), 0x1p-7);
  }
}

TEST(Linear, AddsTheGradientsOfManyTokensUpInFloat32) {
  // In bfloat16 a sum of ones would stop at 256.
  const Tensor x = at::ones({5000, 3}, at::kBFloat16).set_requires_grad(true);
  const Tensor w = at::ones({2, 3}).set_requires_grad(true);
  const Tensor b = at::zeros({2}).set_requires_grad(true);
  ops::linear(x, w, b).sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), at::kFloat);
  EXPECT_LE(relative_error(w.grad(), at::full({2, 3}, 5000.0)), 0x1p-9);
  EXPECT_TRUE(at::equal(b.grad(), at::full({2}, 5000.0f)));
}

TEST(Linear, BackwardSkipsWhatIsNotNeeded) {
  const Tensor x = random_tensor({4, 6}, 20), w = random_tensor({3, 6}, 21);
  const Tensor grad = random_tensor({4, 3}, 22);
  const LinearGrads only_weight = ops::linear_backward(grad, x, w, false, false);
  EXPECT_FALSE(only_weight.x.defined());
  EXPECT_FALSE(only_weight.bias.defined());
  const LinearGrads all = ops::linear_backward(grad, x, w, true, true);
  EXPECT_LE(relative_error(all.x, at::mm(grad, w)), 1e-12);
  EXPECT_LE(relative_error(all.weight, at::mm(grad.t(), x)), 1e-12);
  EXPECT_LE(relative_error(all.bias, grad.sum(0)), 1e-12);
}

TEST(Linear, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto& [m, k, n] : {Size{3000, 64, 96}, Size{1030, 1024, 250}, Size{40, 700, 3}}) {
    SCOPED_TRACE(testing::Message() << "M " << m << " K " << k << " N " << n);
    const Tensor w = random_tensor({n, k}, 31, at::kFloat), b = random_tensor({n}, 32, at::kFloat);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const Tensor x = random_tensor({m, k}, 30, type), grad = random_tensor({m, n}, 33, type);
      expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
        const LinearGrads grads = linear_backward(grad, x, w, /*need_x=*/true, /*need_bias=*/true);
        return {ops::linear(x, w, b), linear_gelu(x, w, b), grads.x, grads.weight, grads.bias};
      });
    }
  }
}

// Slices of rows, and what is left over of them.
TEST(Linear, HasTheSameRowsInAnyNumberOfThem) {
  const Tensor x = random_tensor({3 * 2048 + 791, 24}, 34, at::kFloat);
  const Tensor w = random_tensor({40, 24}, 35, at::kFloat), b = random_tensor({40}, 36, at::kFloat);
  const Tensor expected = at::linear(x, w, b);
  for (const int64_t rows : {int64_t{1}, int64_t{791}, int64_t{2048}, int64_t{4096}, x.size(0)}) {
    const Tensor y = ops::linear(x.narrow(0, 0, rows), w, b);
    EXPECT_LE(relative_error(y, expected.narrow(0, 0, rows)), 1e-6) << rows;
  }
}

TEST(Linear, KeepsNoMemoryForEachNumberOfRows) {
  const at::NoGradGuard no_grad;
  const Tensor x = random_tensor({4096, 64}, 37, at::kFloat),
               w = random_tensor({96, 64}, 38, at::kFloat);
  const auto call = [&](int64_t rows) { (void)ops::linear(x.narrow(0, 0, rows), w); };
  const auto used_bytes = [] { return static_cast<int64_t>(::mallinfo2().uordblks); };
  for (const int64_t rows : {2047, 2048, 4095}) call(rows);
  const int64_t before = used_bytes();
  for (int64_t rows = 2049; rows < 2349; rows += 3) call(rows);  // the rest is 128, 256 or 384
  EXPECT_LT(used_bytes() - before, 4 << 20) << "for a hundred numbers of rows";
}

TEST(Linear, ReportsTheImplementationThatRuns) {
  const bool library_has_onednn =
      c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""}).has_value() &&
      at::globalContext().userEnabledMkldnn();
  const std::string with_onednn =
      kernels::isa_available(kernels::Isa::kAvx512) ? "onednn" : "onednn, library for long sums";
  EXPECT_EQ(linear_choice(), library_has_onednn ? with_onednn : "library");
}

TEST(LinearGelu, AgreesWithTheComposition) {
  for (const auto& [m, k, n] : kSizes) {
    SCOPED_TRACE(testing::Message() << "M " << m << " K " << k << " N " << n);
    const Tensor x = random_tensor({m, k}, 23), w = random_tensor({n, k}, 24);
    const Tensor b = random_tensor({n}, 25);
    const Tensor expected = at::gelu(at::linear(x, w, b), "tanh");
    const Tensor actual = ops::linear_gelu(x.to(at::kFloat), w.to(at::kFloat), b.to(at::kFloat));
    EXPECT_LE(relative_error(actual, expected), 1e-5);
    EXPECT_LE(relative_error(ops::linear_gelu(x, w, b), expected), 1e-12);
  }
}

}  // namespace
}  // namespace lra::ops

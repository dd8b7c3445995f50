#include "ops/product.h"

#include <cstdlib>

#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

const TensorFunction kOurProduct = [](const std::vector<Tensor>& in) {
  return product(in[0], in[1]);
};
const TensorFunction kLibraryProduct = [](const std::vector<Tensor>& in) {
  return at::matmul(in[0], in[1]);
};
// Both operands turned around, which takes A^T B another way than A B.
const TensorFunction kTurned = [](const std::vector<Tensor>& in) {
  return product(in[0].transpose(-2, -1), in[1].transpose(-2, -1));
};
const TensorFunction kTurnedLibrary = [](const std::vector<Tensor>& in) {
  return at::matmul(in[0].transpose(-2, -1), in[1].transpose(-2, -1));
};

struct Shapes {
  std::vector<int64_t> a, b;
};
const std::vector<Shapes> kShapes = {{{1, 1}, {1, 1}},
                                     {{7, 3}, {3, 5}},
                                     {{130, 70}, {70, 300}},
                                     {{3, 40, 9}, {3, 9, 17}},
                                     {{2, 3, 33, 20}, {2, 3, 20, 1}},
                                     {{5, 1, 600}, {5, 600, 8}}};

TEST(Product, AgreesWithTheLibrary) {
  for (const auto& [a, b] : kShapes) {
    SCOPED_TRACE(testing::Message() << a << " " << b);
    const std::vector<Tensor> in = {random_tensor(a, 1), random_tensor(b, 2)};
    expect_agrees(kOurProduct, at::kFloat, kLibraryProduct, in);
    expect_agrees(kOurProduct, at::kDouble, kLibraryProduct, in,
                  {.value = 1e-12, .gradient = 1e-12});
    expect_agrees_in_bf16(kOurProduct, kLibraryProduct, in, 2,
                          {.value = 0x1p-8, .gradient = 0x1p-8});
    const auto turned = [&](size_t i) { return in[i].transpose(-2, -1).contiguous(); };
    expect_agrees(kTurned, at::kFloat, kTurnedLibrary, {turned(0), turned(1)});
  }
}

TEST(Product, TakesTransposedAndExpandedMatrices) {
  const auto with = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      return f({in[0].t().unsqueeze(0).expand({4, -1, -1}), in[1].permute({1, 2, 0})});
    };
  };
  const std::vector<Tensor> in = {random_tensor({50, 6}, 3), random_tensor({9, 4, 50}, 4)};
  expect_agrees(with(kOurProduct), at::kFloat, with(kLibraryProduct), in);
  // [B, L, H, E] as the heads of attention come: [B, H, E, L] times [B, H, L, E].
  const auto heads = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      return f({in[0].permute({0, 2, 3, 1}), in[1].transpose(1, 2)});
    };
  };
  expect_agrees(heads(kOurProduct), at::kFloat, heads(kLibraryProduct),
                {random_tensor({2, 30, 3, 8}, 5), random_tensor({2, 30, 3, 8}, 6)});
}

TEST(Product, OfNothingIsZero) {
  EXPECT_TRUE(at::equal(product(at::ones({2, 3, 0}), at::ones({2, 0, 4})), at::zeros({2, 3, 4})));
  EXPECT_EQ(product(at::ones({0, 3, 5}), at::ones({0, 5, 4})).sizes(),
            (std::vector<int64_t>{0, 3, 4}));
  EXPECT_TRUE(
      at::equal(sum_of_outer_products(at::ones({0, 3}), at::ones({0, 4})), at::zeros({3, 4})));
}

TEST(Product, GradientIsTheSlope) {
  expect_gradient_is_slope(kOurProduct, {random_tensor({2, 5, 7}, 7), random_tensor({2, 7, 3}, 8)});
}

TEST(Product, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(product(at::ones({2, 3}), at::ones({4, 3})), CheckFailure);
  EXPECT_THROW(product(at::ones({2, 3, 4}), at::ones({3, 4, 5})), CheckFailure);
}

TEST(Product, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const auto& [a, b] : kShapes) {
      SCOPED_TRACE(testing::Message() << a << " " << b << " " << type);
      const Tensor x = random_tensor(a, 9, type), y = random_tensor(b, 10, type);
      expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
        const Tensor of_a = x.clone().set_requires_grad(true),
                     of_b = y.clone().set_requires_grad(true);
        const Tensor value = product(of_a, of_b);
        const auto grads = torch::autograd::grad({value}, {of_a, of_b}, {loss_weights(value)});
        return {value.detach(), grads[0], grads[1]};
      });
    }
  }
}

// Sizes of classifiers, of small and of released models; runs of tokens that are no multiple.
struct Gradient {
  int64_t tokens, outputs, inputs;
};
constexpr Gradient kGradients[] = {{1, 3, 2},      {6, 10, 128},     {32, 10, 128},
                                   {301, 77, 33},  {5000, 192, 64},  {4100, 97, 257},
                                   {1500, 300, 1}, {2049, 128, 1024}};

TEST(SumOfOuterProducts, IsTheGradientOfAWeight) {
  for (const auto& [tokens, outputs, inputs] : kGradients) {
    SCOPED_TRACE(testing::Message() << tokens << " " << outputs << " " << inputs);
    const Tensor g = random_tensor({tokens, outputs}, 11), x = random_tensor({tokens, inputs}, 12);
    const auto of = [&](at::ScalarType type) {
      return sum_of_outer_products(g.to(type), x.to(type));
    };
    const Tensor expected = at::mm(g.t(), x);
    EXPECT_LE(relative_error(of(at::kDouble), expected), 1e-12);
    EXPECT_LE(relative_error(of(at::kFloat), expected), 1e-5);
    const Tensor rounded =
        at::mm(g.to(at::kBFloat16).to(at::kDouble).t(), x.to(at::kBFloat16).to(at::kDouble));
    const Tensor of_bf16 = of(at::kBFloat16);
    EXPECT_EQ(of_bf16.scalar_type(), at::kFloat);
    EXPECT_LE(relative_error(of_bf16, rounded), 0x1p-8);
    for (const auto type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const auto both = sum_of_outer_products_and_rows(g.to(type), x.to(type));
      EXPECT_TRUE(at::equal(both.products, of(type)));
      EXPECT_LE(relative_error(both.rows, g.to(type).to(at::kDouble).sum(0)), 1e-5);
    }
  }
}

TEST(SumOfOuterProducts, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const auto& [tokens, outputs, inputs] : kGradients) {
      SCOPED_TRACE(testing::Message() << tokens << " " << outputs << " " << inputs << " " << type);
      const Tensor g = random_tensor({tokens, outputs}, 13, type);
      const Tensor x = random_tensor({tokens, inputs}, 14, type);
      expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
        const auto both = sum_of_outer_products_and_rows(g, x);
        return {both.products, both.rows, sum_of_rows(g)};
      });
    }
  }
}

// The products are the library's where our kernels are missing: on other processors, and here on
// request.
TEST(SumOfOuterProducts, HoldsBothOnTheLibraryAlone) {
  const char* before = std::getenv("LRA_KERNELS");
  const std::string value = before == nullptr ? "" : before;
  setenv("LRA_KERNELS", "ref", 1);
  for (const auto& [tokens, outputs, inputs] : kGradients) {
    SCOPED_TRACE(testing::Message() << tokens << " " << outputs << " " << inputs);
    const Tensor g = random_tensor({tokens, outputs}, 15), x = random_tensor({tokens, inputs}, 16);
    EXPECT_LE(
        relative_error(sum_of_outer_products(g.to(at::kFloat), x.to(at::kFloat)), at::mm(g.t(), x)),
        1e-5);
    expect_same_bits_at_any_number_of_threads([&]() -> std::vector<Tensor> {
      return {sum_of_outer_products(g.to(at::kFloat), x.to(at::kFloat)),
              sum_of_outer_products(g.to(at::kBFloat16), x.to(at::kBFloat16))};
    });
  }
  before == nullptr ? unsetenv("LRA_KERNELS") : setenv("LRA_KERNELS", value.c_str(), 1);
}

TEST(SumOfRows, AgreesWithTheLibrary) {
  const Tensor x = random_tensor({3001, 130}, 17);
  EXPECT_LE(relative_error(sum_of_rows(x), x.sum(0)), 1e-13);
  EXPECT_LE(relative_error(sum_of_rows(x.to(at::kFloat)), x.sum(0)), 1e-5);
  EXPECT_LE(relative_error(sum_of_rows(x.to(at::kFloat).t()), x.t().sum(0)), 1e-5);
}

// Linear layers take it only on some processors; here it runs on all.
TEST(DeepProduct, AgreesWithTheLibraryWithTheSameBitsAtAnyNumberOfThreads) {
  for (const int64_t rows : {0, 1, 255, 257, 523, 9000}) {
    SCOPED_TRACE(rows);
    const Tensor a = random_tensor({600, rows}, 20, at::kFloat).t();
    const Tensor b = random_tensor({33, 600}, 21, at::kFloat).t();
    const Tensor bias = random_tensor({33}, 22, at::kFloat);
    const Tensor expected = at::mm(a.to(at::kDouble), b.to(at::kDouble));
    EXPECT_LE(normwise_error(deep_product(a, b, {}), expected, 1e-30), 1e-6);
    const Tensor dense = deep_product(a.contiguous(), b.contiguous(), bias);
    EXPECT_LE(normwise_error(dense, expected + bias, 1e-30), 1e-6);
    expect_same_bits_at_any_number_of_threads([&] {
      return std::vector<Tensor>{deep_product(a, b, {}), deep_product(a, b, bias)};
    });
  }
}

}  // namespace
}  // namespace lra::ops

#include "ops/embedding.h"

#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

TEST(Embedding, SumsByTokenInFloat32) {
  for (const int64_t count : {1, 4095, 4096, 9000}) {
    const Tensor tokens = at::arange(count, at::kInt).mul(7).remainder(5).to(at::kInt);
    const Tensor grad = random_tensor({count, 6}, 1, at::kFloat).to(at::kBFloat16);
    const Tensor want = at::zeros({6, 6}, at::kDouble).index_add(0, tokens, grad.to(at::kDouble));
    const Tensor got = sum_by_token(grad, tokens, 6);
    EXPECT_EQ(got.scalar_type(), at::kFloat);
    EXPECT_LE(relative_error(got, want), 1e-6) << count;
    EXPECT_TRUE(got[5].eq(0).all().item<bool>()) << "no token stands for it";
  }
  EXPECT_EQ(sum_by_token(at::zeros({0, 6}), at::zeros({0}, at::kInt), 3).sizes(),
            at::IntArrayRef({3, 6}));
}

TEST(Embedding, RowsAreRoundedAndTheirGradientIsNot) {
  const Tensor table = random_tensor({5, 8}, 2, at::kFloat).requires_grad_();
  const Tensor tokens = at::tensor({4, 0, 4, 1}, at::kInt).view({2, 2});
  const Tensor rows = rounded_rows(table, tokens);
  EXPECT_TRUE(
      at::equal(rows.detach(), table.detach().to(at::kBFloat16).index({tokens.to(at::kLong)})));
  const Tensor grad = random_tensor({2, 2, 8}, 3, at::kFloat).to(at::kBFloat16);
  rows.backward(grad);
  const Tensor want = grad.to(at::kFloat).flatten(0, 1);
  EXPECT_TRUE(at::equal(table.grad()[4], want[0] + want[2]));
  EXPECT_TRUE(at::equal(table.grad()[0], want[1]));
  EXPECT_TRUE(table.grad()[2].eq(0).all().item<bool>());
}

}  // namespace
}  // namespace lra::ops

#include "ops/sinkhorn.h"

#include "ops/test_tensors.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kSinkhornBatch = 3, kSinkhornHeads = 2;

Tensor logits(int64_t size, double scale) {
  return scale *
         random_tensor({kSinkhornBatch, kSinkhornHeads, size, size}, static_cast<uint64_t>(size));
}

// Valid items: all, about every second, none.
Tensor some_valid(int64_t size) {
  Tensor valid = at::zeros({kSinkhornBatch, size}, at::kBool);
  valid[0].fill_(true);
  valid[1].copy_(at::arange(size) % 2 == 0);
  return valid;
}

// Sinkhorn normalization by its definition, on the valid rows and columns alone.
Tensor oracle(const Tensor& logits, const Tensor& valid_BN, int64_t iterations) {
  const Tensor pairs = (valid_BN.unsqueeze(-1) & valid_BN.unsqueeze(-2)).unsqueeze(1);
  Tensor s = at::where(pairs, logits.exp(), 0);
  for (int64_t n = 0; n < iterations; ++n) {
    s = s / at::where(s.sum(-1, true) == 0, 1, s.sum(-1, true));
    s = s / at::where(s.sum(-2, true) == 0, 1, s.sum(-2, true));
  }
  return s;
}

TEST(Sinkhorn, AgreesWithItsDefinition) {
  for (const int64_t size : {1, 2, 7, 40}) {
    for (const int64_t iterations : {1, 2, 5}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(testing::Message() << size << " " << iterations << " " << masked);
        const Tensor valid = masked ? some_valid(size) : Tensor();
        const Tensor counted = masked ? valid : at::ones({kSinkhornBatch, size}, at::kBool);
        const auto f = [&](const std::vector<Tensor>& in) {
          return sinkhorn(in[0], valid, iterations);
        };
        const auto definition = [&](const std::vector<Tensor>& in) {
          return oracle(in[0], counted, iterations);
        };
        expect_agrees(f, at::kFloat, definition, {logits(size, 3)});
        expect_agrees(f, at::kDouble, definition, {logits(size, 3)},
                      {.value = 1e-12, .gradient = 1e-11});
      }
    }
  }
}

TEST(Sinkhorn, GradientIsTheSlope) {
  const auto f = [](const std::vector<Tensor>& in) { return sinkhorn(in[0], some_valid(6), 4); };
  expect_gradient_is_slope(f, {logits(6, 2)});
}

TEST(Sinkhorn, BecomesDoublyStochastic) {
  const Tensor s = sinkhorn(logits(9, 4), {}, 200);
  const Tensor ones = at::ones({kSinkhornBatch, kSinkhornHeads, 9}, at::kDouble);
  EXPECT_LE(relative_error(s.sum(-1), ones), 1e-6);
  EXPECT_LE(relative_error(s.sum(-2), ones), 1e-12);
}

TEST(Sinkhorn, TakesLogitsOfAnySize) {
  const Tensor s = sinkhorn(logits(9, 1e4).to(at::kFloat), {}, 5);
  EXPECT_TRUE(s.isfinite().all().item<bool>());
}

}  // namespace
}  // namespace lra::ops

#include "ops/attention/attention.h"
#include "ops/attention/dense_attention.h"
#include "ops/test_bf16.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::ops {
namespace {

using at::Tensor;

constexpr int64_t kJointBatch = 2, kJointHeads = 2;

// Parts of the inputs {q, k, v, k, v, ...}: tensors 1 + 2 n and 2 + 2 n.
struct Part {
  size_t n = 0;
  AttentionPattern pattern = {};
  AttentionMask mask = {};
  AttentionDropout dropout = {};
  PeriodicRows rows = {};
};

// The chosen rows, one by one.
Tensor chosen_rows(const PeriodicRows& rows, int64_t length) {
  const Tensor all = at::arange(length, at::kLong), place = all.remainder(rows.period);
  return all.masked_select(place.ge(rows.first).logical_and(place.lt(rows.end)));
}

TensorFunction joint(const std::vector<Part>& parts) {
  return [parts](const std::vector<Tensor>& in) {
    std::vector<AttentionPart> all;
    for (const Part& p : parts) {
      all.push_back({in[1 + 2 * p.n], in[2 + 2 * p.n], p.pattern, p.mask, p.dropout, p.rows});
    }
    return joint_attention(in[0], all);
  };
}

// The same in one dense softmax over the keys of all parts, side by side.
TensorFunction dense(const std::vector<Part>& parts) {
  return [parts](const std::vector<Tensor>& in) {
    const int64_t queries = in[0].size(1);
    std::vector<Tensor> k, v, allowed, factors;
    for (const Part& p : parts) {
      const auto chosen = [&](const Tensor& t) {
        return p.rows.period > 0 ? t.index_select(1, chosen_rows(p.rows, t.size(1))) : t;
      };
      k.push_back(chosen(in[1 + 2 * p.n]));
      v.push_back(chosen(in[2 + 2 * p.n]));
      const std::vector<int64_t> shape = {kJointBatch, kJointHeads, queries, k.back().size(1)};
      const Tensor seen = pattern_allows(p.pattern, kJointHeads, queries, shape[3]);
      allowed.push_back(masks_allow(seen, p.mask).expand(shape));
      factors.push_back(attention_dropout_factors(shape, p.dropout).to(in[0].scalar_type()));
    }
    const Tensor all = at::cat(allowed, -1);
    const double scale = 1 / std::sqrt(static_cast<double>(in[0].size(3)));
    const Tensor scores = scale * at::einsum("blhe,bshe->bhls", {in[0], at::cat(k, 1)});
    const Tensor weights = scores.masked_fill(~all, -1e30).softmax(-1) * all * at::cat(factors, -1);
    return at::einsum("bhls,bshe->blhe", {weights, at::cat(v, 1)});
  };
}

// q [B, L, H, 6], then keys and values of the given lengths.
std::vector<Tensor> inputs(int64_t queries, const std::vector<int64_t>& lengths) {
  std::vector<Tensor> all = {random_tensor({kJointBatch, queries, kJointHeads, 6}, 1)};
  for (const int64_t length : lengths) {
    for (int each = 0; each < 2; ++each) {
      all.push_back(random_tensor({kJointBatch, length, kJointHeads, 6}, 2 + all.size()));
    }
  }
  return all;
}

// All valid, and the first half (of one: none).
Tensor ragged_rows(int64_t length) {
  Tensor mask = at::ones({kJointBatch, length}, at::kByte);
  mask[1].narrow(0, length / 2, length - length / 2).fill_(0);
  return mask;
}

constexpr PeriodicRows kEveryThird = {3, 0, 1}, kTheOthers = {3, 1, 3};

// Own block, some rows of the same keys, and keys of another kind, each with its own dropout.
std::vector<Part> three_parts(int64_t length, int64_t others) {
  const Tensor mask = ragged_rows(length), of_rows = kEveryThird.of(mask);
  const AttentionPattern all_blocks = {.offsets = at::tensor({0, 1}, at::kLong),
                                       .key_blocks = at::tensor({0}, at::kInt),
                                       .query_block = length,
                                       .key_block = of_rows.size(1)};
  return {{.pattern = diagonal_pattern(length, 8), .mask = {mask, mask}, .dropout = {0.3, 5}},
          {.pattern = all_blocks,
           .mask = {of_rows.contiguous(), mask},
           .dropout = {0.2, 6},
           .rows = kEveryThird},
          {.n = 1, .mask = {ragged_rows(others), mask}, .dropout = {0.1, 7}}};
}

TEST(JointAttention, IsOneSoftmaxOverTheKeysOfAllParts) {
  for (const auto& [length, others] : {std::pair{2, 1}, {17, 5}, {131, 40}}) {
    SCOPED_TRACE(testing::Message() << "L " << length);
    const auto parts = three_parts(length, others);
    const auto in = inputs(length, {length, others});
    expect_agrees(joint(parts), at::kFloat, dense(parts), in);
    expect_agrees(joint(parts), at::kDouble, dense(parts), in, {.value = 1e-6, .gradient = 1e-6});
  }
}

TEST(JointAttention, GradientIsTheSlope) {
  expect_gradient_is_slope(joint(three_parts(11, 4)), inputs(11, {11, 4}));
}

TEST(JointAttention, AgreesInBf16) {
  const auto parts = three_parts(131, 40);
  expect_agrees_in_bf16(joint(parts), dense(parts), inputs(131, {131, 40}), 5);
}

TEST(JointAttention, TakesPartsOfChosenRowsAlone) {
  for (const int64_t length : {2, 50}) {
    const std::vector<Part> parts = {{.rows = kTheOthers}, {.rows = kEveryThird}};
    expect_agrees(joint(parts), at::kFloat, dense(parts), inputs(length, {length}));
    const std::vector<Part> alone = {parts[1]};
    expect_agrees(joint(alone), at::kFloat, dense(alone), inputs(length, {length}));
  }
}

TEST(JointAttention, SumsTheGradientsOfATensorThatIsKeyAndValue) {
  const auto in = inputs(20, {20});
  const TensorFunction ours = [](const std::vector<Tensor>& t) {
    return joint_attention(t[0], {{.k_BSHE = t[1], .v_BSHE = t[1], .rows = kEveryThird},
                                  {.k_BSHE = t[1], .v_BSHE = t[1], .rows = kTheOthers}});
  };
  const TensorFunction oracle = [](const std::vector<Tensor>& t) {
    return dense_attention(t[0], t[1], t[1], at::ones({1, 1, 20, 20}, at::kBool));
  };
  expect_agrees(ours, at::kFloat, oracle, in);
}

TEST(JointAttention, GivesZeroWhereNoPartShowsAKey) {
  const Tensor none = at::zeros({kJointBatch, 9}, at::kByte);
  const std::vector<Part> parts = {{.mask = {none, {}}}, {.n = 1, .mask = {none, {}}}};
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const Differentiated found = differentiate(joint(parts), inputs(9, {9, 9}), type);
    EXPECT_EQ(found.value.abs().max().item<double>(), 0);
    for (const Tensor& gradient : found.gradients) {
      EXPECT_EQ(gradient.abs().max().item<double>(), 0);
    }
  }
}

// Shares of the parts from 0 to 1, and weights too small for float32.
TEST(JointAttention, TakesPartsOfVeryDifferentScores) {
  const std::vector<Part> parts = {{}, {.n = 1}};
  for (const size_t larger : {1, 3}) {
    auto in = inputs(60, {40, 30});
    in[larger] = 100 * in[larger];
    expect_agrees(joint(parts), at::kFloat, dense(parts), in);
  }
}

// Like inputs(), heads 4 wide: the products of queries and keys are whole numbers near 2 `score`,
// the same in float32, and every eighth key has the largest one.
std::vector<Tensor> inputs_of_scores(double score, int64_t queries,
                                     const std::vector<int64_t>& lengths) {
  std::vector<Tensor> all = inputs(queries, lengths);
  for (size_t n = 0; n < all.size(); ++n) {
    all[n] = all[n].narrow(-1, 0, 4).contiguous();
    if (n > 0 && n % 2 == 0) continue;  // values
    Tensor& t = all[n] = (2.5 * all[n]).round();
    if (n == 0) t.abs_();
    if (n > 0) t.slice(1, 0, std::nullopt, 8).fill_(2);
    t.select(-1, 0).fill_(n == 0 ? std::sqrt(score) : 2 * std::sqrt(score));
  }
  return all;
}

// In one softmax over the keys of all parts, composed in float32, the slopes of the scores cancel
// against the large numbers too, so the rest may be three times as far off.
TEST(JointAttention, IsAsExactWhereScoresAreLarge) {
  const std::vector<std::vector<Part>> cases = {
      three_parts(131, 40), {{}, {.n = 1}}, {{.rows = kTheOthers}, {.rows = kEveryThird}}};
  for (const double score : {1.0, 1e4, 1e6}) {
    for (const auto& parts : cases) {
      SCOPED_TRACE(testing::Message() << parts.size() << " parts, scores of " << score);
      const auto in = inputs_of_scores(score, 131, {131, 40});
      const Differentiated ours = differentiate(joint(parts), in, at::kFloat);
      const Differentiated composed = differentiate(dense(parts), in, at::kFloat);
      const Differentiated exact = differentiate(dense(parts), in, at::kDouble);
      EXPECT_LE(relative_error(ours.value, exact.value), 1e-6);
      for (size_t n = 0; n < in.size(); ++n) {
        const double error = relative_error(composed.gradients[n], exact.gradients[n]);
        EXPECT_LE(relative_error(ours.gradients[n], exact.gradients[n]), std::max(2e-6, 3 * error))
            << "gradient of input " << n;
      }
    }
  }
}

TEST(JointAttention, StaysFiniteWhereScoresAreLargerThanAnyExponent) {
  const auto parts = three_parts(131, 40);
  std::vector<Tensor> in, doubles;
  for (const Tensor& t : inputs(131, {131, 40})) {
    in.push_back((1e8 * t).to(at::kFloat));
    doubles.push_back(in.back().to(at::kDouble));
  }
  const Differentiated ours = differentiate(joint(parts), in, at::kFloat);
  EXPECT_LE(relative_error(ours.value, dense(parts)(doubles)), 1e-5);
  for (const Tensor& gradient : ours.gradients) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
}

TEST(JointAttention, GivesNaNWhereProductsOverflow) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor q = at::full({1, 5, 1, 8}, 1e25, type), k = at::full({1, 7, 1, 8}, -1e25, type);
    const Tensor out = joint_attention(
        q, {{.k_BSHE = k, .v_BSHE = at::ones_like(k)}, {.k_BSHE = k, .v_BSHE = at::ones_like(k)}});
    EXPECT_TRUE(out.isnan().all().item<bool>());
  }
}

TEST(JointAttention, TakesStridedInputsAndGradients) {
  const auto transposed = [](const TensorFunction& f) {
    return [f](const std::vector<Tensor>& in) {
      std::vector<Tensor> turned;
      for (const Tensor& t : in) turned.push_back(t.transpose(1, 2));
      return f(turned).transpose(1, 2);
    };
  };
  const auto parts = three_parts(17, 5);
  std::vector<Tensor> in;
  for (const Tensor& t : inputs(17, {17, 5})) in.push_back(t.transpose(1, 2).contiguous());
  expect_agrees(transposed(joint(parts)), at::kFloat, transposed(dense(parts)), in);
}

TEST(JointAttention, NeverReadsMaskedRows) {
  const Tensor mask = ragged_rows(21);
  const std::vector<Part> parts = {{.mask = {mask, mask}}, {.n = 1, .mask = {mask, mask}}};
  std::vector<Tensor> poisoned;
  for (const Tensor& t : inputs(21, {21, 21})) {
    const Tensor hidden = mask.eq(0).unsqueeze(-1).unsqueeze(-1);
    poisoned.push_back(t.masked_fill(hidden, std::numeric_limits<double>::quiet_NaN()));
  }
  const auto clean = differentiate(joint(parts), inputs(21, {21, 21}), at::kFloat);
  const auto dirty = differentiate(joint(parts), poisoned, at::kFloat);
  EXPECT_TRUE(at::equal(clean.value, dirty.value));
  for (size_t i = 0; i < clean.gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(clean.gradients[i], dirty.gradients[i])) << "input " << i;
  }
}

TEST(JointAttention, GivesTheGradientOfTheInputsThatNeedOne) {
  const auto parts = three_parts(17, 5);
  auto all = differentiate(joint(parts), inputs(17, {17, 5}), at::kDouble);
  auto in = inputs(17, {17, 5});
  in[2].set_requires_grad(true);
  const Tensor value = joint(parts)(in);
  const auto some = torch::autograd::grad({value}, {in[2]}, {loss_weights(value)});
  EXPECT_TRUE(at::equal(some[0], all.gradients[2]));
}

TEST(JointAttention, HasTheSameBitsAtAnyNumberOfThreads) {
  // LibTorch gives a second thread work from 32,768 numbers on.
  const auto in = inputs(3000, {3000, 60});
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    expect_same_bits_at_any_number_of_threads([&] {
      const Differentiated found = differentiate(joint(three_parts(3000, 60)), in, type);
      std::vector<Tensor> all = found.gradients;
      all.push_back(found.value);
      return all;
    });
  }
}

// A function must give the same bits in the remainder behind a thread's last whole vector as in a
// vector. LibTorch gives a second thread work from 32,768 numbers on; the share of one of two
// threads has a remainder of 14 here.
TEST(JointAttention, HasTheSameBitsWhereverThreadsCutTheLogsumexps) {
  for (int64_t length = 9015; length < 9015 + 16 * 16; length += 16) {
    const auto in = inputs(length, {60, 7});
    expect_same_bits_at_any_number_of_threads([&] {
      const Differentiated found = differentiate(joint({{.n = 0}, {.n = 1}}), in, at::kFloat);
      return std::vector<Tensor>{found.value, found.gradients[0]};
    });
  }
}

}  // namespace
}  // namespace lra::ops

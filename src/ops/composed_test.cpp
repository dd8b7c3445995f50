#include "ops/composed.h"

#include "ops/attention/attention.h"
#include "ops/attention/feature_attention.h"
#include "ops/convolution_silu.h"
#include "ops/feed_forward.h"
#include "ops/linear.h"
#include "ops/long_convolution.h"
#include "ops/pointwise/activation.h"
#include "ops/pointwise/batch_norm.h"
#include "ops/pointwise/gate.h"
#include "ops/pointwise/layer_norm.h"
#include "ops/pointwise/pointwise.h"
#include "ops/pointwise/row_norm.h"
#include "ops/rotate_tracks.h"
#include "ops/scan/diagonal_scan.h"
#include "ops/scan/gated_scan.h"
#include "ops/scan/matrix_scan.h"
#include "ops/scan/selective_scan.h"
#include "ops/scan/state_scan.h"
#include "ops/sinkhorn.h"
#include "ops/sorted_runs.h"
#include "ops/test_tensors.h"
#include "ops/token_blocks.h"

namespace lra::ops {
namespace {

using at::Tensor;
using Inputs = std::vector<Tensor>;

constexpr int64_t kExamples = 2, kTokens = 7;
constexpr double kDropped = 0.3;
constexpr uint64_t kDropKey = 99;

struct Operator {
  const char* name;
  TensorFunction f;
  Inputs inputs;
};

// The second of two examples is shorter.
Tensor some_tokens() {
  Tensor mask = at::ones({kExamples, kTokens}, at::kByte);
  mask[1].narrow(0, 4, 3).fill_(0);
  return mask;
}

std::vector<Operator> pointwise_operators() {
  const Tensor x = random_tensor({kExamples, kTokens, 6}, 1), row = random_tensor({6}, 2),
               other_row = random_tensor({6}, 3), wide = random_tensor({5, 6}, 4),
               back = random_tensor({6, 5}, 5), hidden = random_tensor({5}, 6);
  return {
      {"glu", [](const auto& in) { return ops::glu(in[0]); }, {x}},
      {"gate", [](const auto& in) { return ops::gate(in[0], in[1]); }, {x, x.flip(1)}},
      {"silu", [](const auto& in) { return ops::silu(in[0], in[1]); }, {x, x.flip(1)}},
      {"silu_alone", [](const auto& in) { return ops::silu(in[0]); }, {x}},
      {"sigmoid", [](const auto& in) { return ops::sigmoid(in[0]); }, {x}},
      {"closed_gate", [](const auto& in) { return closed_gate(in[0]); }, {x}},
      {"softplus", [](const auto& in) { return ops::softplus(in[0]); }, {x}},
      {"positive", [](const auto& in) { return ops::positive(in[0]); }, {x}},
      {"row_norm", [](const auto& in) { return row_norm(in[0], in[1], 1e-5); }, {x, row}},
      {"row_norm_centered",
       [](const auto& in) { return row_norm(in[0], in[1], 1e-5, true); },
       {x.unflatten(2, {2, 3}), row.view({2, 3})}},
      {"linear",
       [](const auto& in) { return ops::linear(in[0], in[1], in[2]); },
       {x, wide, hidden}},
      {"layer_norm",
       [](const auto& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-6); },
       {x, row, other_row}},
      {"layer_norm_of_a_view",
       [](const auto& in) { return ops::layer_norm(in[0].transpose(0, 1), in[1], in[2], 1e-6); },
       {x, row, other_row}},
      {"batch_norm",
       [](const auto& in) { return ops::batch_norm(in[0], some_tokens(), in[1], in[2], 1e-5).y; },
       {x, row, other_row}},
      {"gelu_dropout",
       [](const auto& in) { return gelu_dropout(in[0], kDropped, kDropKey, 2); },
       {x}},
      {"feed_forward",
       [](const auto& in) {
         return feed_forward(in[0], in[1], in[2], in[3], in[4], kDropped, kDropKey, in[5], in[6]);
       },
       {x, wide, hidden, back, row, other_row + 2, row}},
      {"feed_forward_with_residual",
       [](const auto& in) {
         return feed_forward(in[0], in[1], in[2], in[3], in[4], kDropped, kDropKey, in[5], in[6],
                             kDropKey + 1);
       },
       {x, wide, hidden, back, row, other_row + 2, row}},
      {"layer_norm_of_stream",
       [](const auto& in) {
         const auto [norm, stream] = ops::layer_norm_of_stream(in[0], in[1], in[2], 1e-6);
         return norm * 2 + stream;
       },
       {x, row, other_row}},
      {"row_norm_of_stream",
       [](const auto& in) {
         const auto [norm, stream] = row_norm_of_stream(in[0], in[1], 1e-6);
         return norm * 2 + stream;
       },
       {x, row}},
      {"batch_norm_of_stream",
       [](const auto& in) {
         const auto norm = ops::batch_norm(in[0], some_tokens(), in[1], in[2], 1e-5);
         return norm.y * 2 + norm.stream;
       },
       {x, row, other_row}},
      {"feed_forward_without_norm",
       [](const auto& in) { return feed_forward(in[0], in[1], in[2], in[3], in[4], 0, 0); },
       {x, wide, hidden, back, row}},
  };
}

std::vector<Operator> mixing_operators() {
  const auto qkv = [](uint64_t seed) { return random_tensor({kExamples, kTokens, 2, 3}, seed); };
  const Inputs three = {qkv(1), qkv(2), qkv(3)};
  const Inputs packed = {at::stack(three, 2)};
  const AttentionMask mask = {.keys = some_tokens(), .queries = some_tokens()};
  const AttentionPattern blocks = diagonal_pattern(kTokens, 3);
  AttentionPattern causal;
  causal.right = 0;
  const auto features = [](FeatureAttentionOptions options) {
    return [options](const auto& in) {
      return packed_feature_attention(in[0], some_tokens(), options);
    };
  };
  return {
      {"attention",
       [=](const auto& in) {
         return attention(in[0], in[1], in[2], blocks, mask, {kDropped, kDropKey}, 0.7, in[3]);
       },
       {three[0], three[1], three[2], random_tensor({2, kTokens, kTokens}, 4)}},
      {"laplace_attention",
       [=](const auto& in) {
         return attention(in[0], in[1], in[2], blocks, mask, {kDropped, kDropKey}, 0.7, in[3],
                          AttentionWeights::kLaplace);
       },
       {three[0], three[1], random_tensor({kExamples, kTokens, 2, 5}, 5),
        random_tensor({2, 2 * kTokens - 1}, 4)}},
      {"partial_attention",
       [=](const auto& in) {
         const auto part = partial_attention(in[0], in[1], in[2], causal, {});
         return part.out_BLHE.sum(3).transpose(1, 2) * part.logsumexp_BHL;
       },
       three},
      {"packed_attention", [=](const auto& in) { return packed_attention(in[0], {}, mask); },
       packed},
      {"joint_attention",
       [=](const auto& in) {
         return joint_attention(in[0], {{in[1], in[2], blocks, mask},
                                        {in[1], in[2], causal, {}, {kDropped, kDropKey}}});
       },
       three},
      {"elu_attention", features({kernels::FeatureMap::kElu, 0, 1e-6}), packed},
      {"relu_attention", features({kernels::FeatureMap::kRelu, 0.5, 0}), packed},
      {"token_blocks",
       [](const auto& in) { return token_blocks(in[0], some_tokens(), 4).square(); },
       {at::stack(three, 2)}},
      {"sinkhorn",
       [](const auto& in) {
         return ops::sinkhorn(in[0], some_tokens().narrow(1, 2, 4).to(at::kBool), 3);
       },
       {random_tensor({kExamples, 2, 4, 4}, 5)}},
  };
}

std::vector<Operator> recurrent_operators() {
  const Tensor x = random_tensor({kExamples, kTokens, 3}, 1);
  const Inputs scan = {x, 0.6 * random_tensor({2, 4, 3}, 2), random_tensor({2, 2, 4, 3}, 3),
                       random_tensor({3}, 4)};
  const auto heads = [](uint64_t seed, int64_t width) {
    return random_tensor({kExamples, kTokens, 2, width}, seed);
  };
  return {
      {"diagonal_scan",
       [](const auto& in) {
         return diagonal_scan({in[0], in[1], in[2], in[3], some_tokens()});
       },
       scan},
      {"real_scan",
       [](const auto& in) {
         return diagonal_scan(
             {in[0], in[1].narrow(0, 0, 1), in[2].narrow(0, 0, 1).narrow(1, 0, 1)});
       },
       scan},
      {"state_scan",
       [](const auto& in) { return state_scan(in[0], in[1], true, some_tokens()); },
       {random_tensor({kExamples, kTokens, 2, 3}, 7), 0.6 * random_tensor({2, 3}, 8)}},
      {"state_scan_in_one_direction",
       [](const auto& in) { return state_scan(in[0], in[1], false); },
       {random_tensor({kExamples, kTokens, 2, 3}, 7), 0.6 * random_tensor({2, 3}, 8)}},
      {"selective_scan",
       [](const auto& in) {
         return selective_scan({in[0], in[1], -in[2].square(), in[3], in[4], in[5], in[2], in[5],
                                true, some_tokens()});
       },
       {x, random_tensor({kExamples, kTokens, 3}, 9), random_tensor({4, 3}, 10),
        random_tensor({kExamples, kTokens, 3, 4}, 11),
        random_tensor({kExamples, kTokens, 3, 4}, 12), random_tensor({3}, 13)}},
      {"selective_scan_of_complex_states",
       [](const auto& in) {
         return selective_scan({in[0], in[1], -in[2].square(), in[3], in[4], in[5],
                                at::cat({in[2], in[6]}), in[5], false, some_tokens(), in[6]});
       },
       {x, random_tensor({kExamples, kTokens, 3}, 9), random_tensor({2, 3}, 10),
        random_tensor({kExamples, kTokens, 3, 4}, 11),
        random_tensor({kExamples, kTokens, 3, 4}, 12), random_tensor({3}, 13),
        random_tensor({2, 3}, 14)}},
      {"selective_scan_of_one_group",
       [](const auto& in) {
         return selective_scan({in[0], in[1], -in[2].square(), in[3], in[3], in[4]});
       },
       {x, random_tensor({kExamples, kTokens, 3}, 9), random_tensor({4, 3}, 10),
        random_tensor({kExamples, kTokens, 1, 4}, 11), random_tensor({3}, 13)}},
      {"gated_scan",
       [](const auto& in) { return gated_scan(in[0].sigmoid(), in[1], 1, some_tokens()); },
       {x, x.flip(1)}},
      {"matrix_scan",
       [](const auto& in) {
         return matrix_scan({in[0], in[1], in[2], -in[3].square(), in[4], 1, some_tokens()});
       },
       {heads(20, 3), heads(21, 3), heads(22, 2), heads(23, 3), heads(24, 1).squeeze(3)}},
      {"matrix_scan_without_delta",
       [](const auto& in) {
         return matrix_scan({in[0], in[1], in[2], -in[3].square()});
       },
       {heads(20, 3), heads(21, 3), heads(22, 2), heads(23, 1)}},
      {"rotate_tracks",
       [](const auto& in) { return rotate_tracks(in[0], 2, some_tokens()).square(); },
       {x}},
      {"convolution",
       [](const auto& in) { return long_convolution(in[0], some_tokens(), in[1], 2); },
       {x, random_tensor({3, 5}, 5)}},
      {"convolution_silu",
       [](const auto& in) { return convolution_silu(in[0], some_tokens(), in[1], in[2], 2); },
       {x, random_tensor({3, 5}, 5), random_tensor({3}, 6)}},
      {"convolution_beyond_the_length",
       [](const auto& in) { return long_convolution(in[0], {}, in[1], 9); },
       {x, random_tensor({3, 19}, 6)}},
  };
}

std::vector<Operator> all_operators() {
  std::vector<Operator> all = pointwise_operators();
  for (const auto& more : {mixing_operators(), recurrent_operators()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// All gradients of sum(weights * f), as one row. With a graph they are those of the composition.
Tensor gradients(const TensorFunction& f, Inputs inputs, bool create_graph) {
  const at::AutoGradMode with_gradients(true);
  for (Tensor& t : inputs) {
    if (!t.requires_grad()) t = t.detach().set_requires_grad(true);
  }
  const Tensor y = f(inputs);
  Inputs found = torch::autograd::grad({y}, inputs, {loss_weights(y)}, create_graph, create_graph,
                                       /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) {
    found[i] = (found[i].defined() ? found[i] : at::zeros_like(inputs[i])).flatten();
  }
  return at::cat(found);
}

class EveryFusedOperator : public testing::TestWithParam<Operator> {};

TEST_P(EveryFusedOperator, HasTheGradientsOfItsComposition) {
  const auto& [name, f, inputs] = GetParam();
  EXPECT_LE(relative_error(gradients(f, inputs, false), gradients(f, inputs, true)), 1e-6);
}

TEST_P(EveryFusedOperator, HasASecondDerivative) {
  const auto& [name, f, inputs] = GetParam();
  expect_gradient_is_slope([&f](const auto& in) { return gradients(f, in, true); }, inputs);
}

INSTANTIATE_TEST_SUITE_P(All, EveryFusedOperator, testing::ValuesIn(all_operators()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FusedOperators, RefuseASecondDerivativeThatWouldBeWrong) {
  const Tensor x = random_tensor({5, 8}, 1, at::kBFloat16).set_requires_grad(true);
  const Tensor y = ops::linear(x, at::ones({3, 8}), {});
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, true, true), Error);
  EXPECT_NO_THROW(torch::autograd::grad({y.sum()}, {x}, {}, true, false));

  const Tensor q = random_tensor({1, 8, 1, 4}, 2, at::kFloat).set_requires_grad(true);
  AttentionPattern pattern;
  pattern.runs = sorted_runs(at::zeros({1, 1, 1, 8}, at::kInt), 2, {})[0];
  const Tensor out = attention(q, q, q, pattern);
  EXPECT_THROW(torch::autograd::grad({out.sum()}, {q}, {}, true, true), Error);
}

// 7,919 is a prime: transforms of its size are the worst case of a library.
TEST(ComposedScans, AreAsExactAtAnyLength) {
  const Tensor a = at::tensor({0.954F, 0.295F}).view({2, 1, 1}).expand({2, 1, 3});
  for (const int64_t length : {4096, 7919, 16'000}) {
    const auto expect_exact = [length](const TensorFunction& f, const Inputs& in) {
      Inputs wide;
      for (const Tensor& t : in) wide.push_back(t.to(at::kDouble));
      EXPECT_LE(relative_error(f(in), f(wide)), 2e-6) << length;
    };
    expect_exact([](const auto& in) { return composed_diagonal_scan(in[0], in[1], in[2], {}, {}); },
                 {random_tensor({1, length, 3}, 1, at::kFloat), a,
                  random_tensor({2, 2, 1, 3}, 2, at::kFloat)});
    expect_exact([](const auto& in) { return composed_state_scan(in[0], in[1], true, {}); },
                 {random_tensor({1, length, 2, 3}, 1, at::kFloat), a.select(1, 0)});
  }
}

// An operator that has nothing but its composed version: a file like this one.
TORCH_LIBRARY_FRAGMENT(lra_test, m) {
  m.def("bump(Tensor x) -> Tensor", [](const Tensor& x) { return x / (1 + x * x); });
}

TEST(ComposedOperator, IsAWholeOperator) {
  const auto op = find_op<Tensor(const Tensor&)>("lra_test::bump");
  const TensorFunction f = [&](const auto& in) { return op.call(in[0]); };
  const Inputs in = {random_tensor({3, 4}, 1)};
  expect_gradient_is_slope(f, in);
  expect_gradient_is_slope([&](const auto& t) { return gradients(f, t, true); }, in);
  EXPECT_EQ(op.call(at::empty({3, 4}, at::TensorOptions(at::kMeta))).sizes(), in[0].sizes());
}

}  // namespace
}  // namespace lra::ops

#include "kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "kernels/attention/attention_test_case.h"
#include "kernels/attention/attention_test_results.h"
#include "kernels/attention/attention_test_settings.h"
#include "kernels/choice.h"
#include "kernels/test_implementations.h"

namespace lra::kernels {
namespace {

template <typename T>
void run_chosen(AttentionCase<T>& c) {
  attention_forward(c.problem(), c.forward_args());
  attention_backward(c.problem(), c.backward_args());
}

std::vector<float> floats(const std::vector<Bf16>& x) { return {x.begin(), x.end()}; }

TEST(AttentionRef, MatchesDenseFormulasInDouble) {
  for (const CaseSettings& settings : all_cases()) {
    SCOPED_TRACE(settings.describe());
    AttentionCase<double> got(settings), want(settings);
    run_reference(got);
    run_dense_oracle(want);
    expect_same_results(got, want, 1e-12, 1e-11);
  }
}

TEST(AttentionRef, GradientsMatchCentralDifferences) {
  CaseSettings settings = settings_of(2, 2, 9, 11, 3);
  settings.key_mask = settings.query_mask = true;
  settings.query_block = settings.key_block = 4;
  settings.right = 5;
  settings.dropout_rate = 0.2;
  settings.grad_logsumexp = settings.bias = true;
  AttentionCase<double> c(settings, 3);
  run_reference(c);
  AttentionCase<double> moved(settings, 3);
  const auto loss = [&] {
    ref::attention_forward(moved.problem(), moved.forward_args());
    double sum = 0;
    for (size_t n = 0; n < moved.out.size(); ++n) sum += moved.out[n] * moved.grad_out[n];
    const std::vector<double> logsumexp = moved.logsumexp();
    for (size_t n = 0; n < logsumexp.size(); ++n) {
      // A query without a key: -infinity, whatever the inputs.
      if (std::isfinite(logsumexp[n])) sum += logsumexp[n] * moved.grad_logsumexp[n];
    }
    return sum;
  };
  const auto check = [&](std::vector<double>& input, const std::vector<double>& gradient) {
    const double step = 1e-5;
    for (size_t n = 0; n < input.size(); ++n) {
      const double kept = input[n];
      input[n] = kept + step;
      const double above = loss();
      input[n] = kept - step;
      const double below = loss();
      input[n] = kept;
      EXPECT_NEAR((above - below) / (2 * step), gradient[n], 1e-8);
    }
  };
  check(moved.q, c.grad_q);
  check(moved.k, c.grad_k);
  check(moved.v, c.grad_v);
  check(moved.bias, c.grad_bias);
}

TEST(AttentionRef, GradientOfARelativeBiasMatchesCentralDifferences) {
  for (const bool laplace : {false, true}) {
    CaseSettings settings = settings_of(2, 2, 5, 7, 3);
    settings.shape.value_dim = 2;
    settings.bias = settings.relative = settings.key_mask = true;
    settings.laplace = laplace;
    AttentionCase<double> c(settings, 3), moved(settings, 3);
    run_reference(c);
    const auto loss = [&] {
      ref::attention_forward(moved.problem(), moved.forward_args());
      return std::inner_product(moved.out.begin(), moved.out.end(), moved.grad_out.begin(), 0.0);
    };
    for (size_t n = 0; n < moved.bias.size(); ++n) {
      const double kept = moved.bias[n], step = 1e-5;
      moved.bias[n] = kept + step;
      const double above = loss();
      moved.bias[n] = kept - step;
      EXPECT_NEAR((above - loss()) / (2 * step), c.grad_bias[n], 1e-8);
      moved.bias[n] = kept;
    }
  }
}

TEST(AttentionRef, FloatKeepsTheErrorContract) {
  for (const CaseSettings& settings : all_cases()) {
    SCOPED_TRACE(settings.describe());
    AttentionCase<float> got(settings);
    AttentionCase<double> want(settings);
    run_reference(got);
    run_reference(want);
    expect_same_results(got, want, 1e-5, 1e-4);
  }
}

using AttentionFloat = ImplementationTest;

// The query must see a key: without one the output is 0.
TEST_P(AttentionFloat, KeepsNaNOfAVisibleQuery) {
  AttentionCase<float> fast(settings_of(1, 2, 20, 33, 8)), reference(fast.settings);
  for (auto* c : {&fast, &reference}) c->q[5] = std::numeric_limits<float>::quiet_NaN();
  attention_forward(fast.problem(), fast.forward_args());
  ref::attention_forward(reference.problem(), reference.forward_args());
  int64_t num_nan = 0;
  for (size_t n = 0; n < fast.out.size(); ++n) {
    EXPECT_EQ(std::isnan(fast.out[n]), std::isnan(reference.out[n])) << n;
    num_nan += std::isnan(fast.out[n]);
  }
  EXPECT_EQ(num_nan, 8);
}

TEST_P(AttentionFloat, KeepsTheErrorContract) {
  for (const CaseSettings& settings : all_cases()) {
    SCOPED_TRACE(settings.describe());
    AttentionCase<float> got(settings);
    AttentionCase<double> want(settings);
    run_chosen(got);
    run_reference(want);
    expect_same_results(got, want, 1e-5, 1e-4);
  }
}

TEST_P(AttentionFloat, KeepsTheErrorContractOnLongRowsOfLargeScores) {
  CaseSettings settings = settings_of(1, 1, 130, 2100, 64);
  settings.dropout_rate = 0.1;
  AttentionCase<float> got(settings);
  AttentionCase<double> want(settings);
  for (float& x : got.q) x *= 8;
  for (double& x : want.q) x *= 8;
  run_chosen(got);
  run_reference(want);
  expect_same_results(got, want, 1e-5, 1e-4);
}

void expect_same_bits_at_any_number_of_threads(const CaseSettings& settings) {
  const int before = num_threads();
  set_num_threads(1);
  AttentionCase<float> one(settings);
  run_chosen(one);
  for (const int threads : {2, 5}) {
    set_num_threads(threads);
    AttentionCase<float> several(settings);
    run_chosen(several);
    EXPECT_EQ(one.out, several.out);
    EXPECT_EQ(one.largest, several.largest);
    EXPECT_EQ(one.sum, several.sum);
    EXPECT_EQ(one.grad_q, several.grad_q);
    EXPECT_EQ(one.grad_k, several.grad_k);
    EXPECT_EQ(one.grad_v, several.grad_v);
    EXPECT_EQ(one.grad_bias, several.grad_bias);
  }
  set_num_threads(before);
}

TEST_P(AttentionFloat, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const int64_t planes : {1, 3, 8}) {
    CaseSettings settings = settings_of(planes, 1, 500, 700, 20);
    settings.right = 100;
    settings.key_mask = true;
    settings.dropout_rate = 0.1;
    expect_same_bits_at_any_number_of_threads(settings);
    CaseSettings sorted = settings_of(planes, 1, 700, 700, 20);
    sorted.rounds = 2;
    sorted.buckets = 12;
    sorted.chunk = 100;
    expect_same_bits_at_any_number_of_threads(sorted);
    CaseSettings biased = settings_of(3, planes, 300, 310, 20);
    biased.bias = true;
    expect_same_bits_at_any_number_of_threads(biased);
    for (const bool laplace : {false, true}) {
      CaseSettings relative = settings_of(planes, 1, 300, 310, 20);
      relative.bias = relative.relative = relative.key_mask = true;
      relative.laplace = laplace;
      relative.shape.value_dim = 33;
      expect_same_bits_at_any_number_of_threads(relative);
    }
  }
}

TEST_P(AttentionFloat, GivesTheGradientOfAPartOfASoftmax) {
  expect_gradients_of_parts(run_chosen<float>, [](auto& half) {
    attention_backward(half.problem(), half.backward_args());
  });
}

TEST_P(AttentionFloat, MergesPartsOfLargeScores) {
  expect_halves_of_large_scores_add_up<float>(
      [](auto& half) { attention_forward(half.problem(), half.forward_args()); },
      [](auto& half) { attention_backward(half.problem(), half.backward_args()); }, 2e-6, 2e-6);
}

TEST_P(AttentionFloat, GivesFiniteNumbersOrNaN) {
  expect_finite_or_nan<float>(run_chosen<float>, 1e-5);
}

TEST_P(AttentionFloat, NeverUsesMaskedValues) {
  CaseSettings settings = settings_of(2, 2, 70, 90, 8);
  settings.key_mask = settings.query_mask = true;
  AttentionCase<float> clean(settings), dirty(settings);
  spoil_masked(dirty);
  run_chosen(clean);
  run_chosen(dirty);
  expect_same_results(dirty, clean, 0, 0);
}

using AttentionBf16 = ImplementationTest;

TEST_P(AttentionBf16, KeepsTheErrorContract) {
  for (CaseSettings settings : all_cases()) {
    settings.bf16_values = true;
    SCOPED_TRACE(settings.describe());
    AttentionCase<Bf16> got(settings);
    AttentionCase<double> want(settings);
    run_chosen(got);
    run_reference(want);
    expect_same_results(got, want, 0x1p-7, 0x1p-6);
  }
}

TEST_P(AttentionBf16, GivesTheSameBitsAtAnyNumberOfThreads) {
  for (const int64_t planes : {1, 3}) {
    CaseSettings settings = settings_of(planes, 1, 500, 700, 20);
    settings.query_mask = settings.key_mask = true;
    settings.dropout_rate = 0.1;
    const int before = num_threads();
    AttentionCase<Bf16> one(settings), five(settings);
    set_num_threads(1);
    run_chosen(one);
    set_num_threads(5);
    run_chosen(five);
    set_num_threads(before);
    EXPECT_EQ(one.largest, five.largest);
    EXPECT_EQ(one.sum, five.sum);
    EXPECT_EQ(floats(one.out), floats(five.out));
    EXPECT_EQ(floats(one.grad_q), floats(five.grad_q));
    EXPECT_EQ(floats(one.grad_k), floats(five.grad_k));
    EXPECT_EQ(floats(one.grad_v), floats(five.grad_v));
  }
}

TEST_P(AttentionBf16, MergesPartsOfLargeScores) {
  expect_halves_of_large_scores_add_up<Bf16>(
      [](auto& half) { attention_forward(half.problem(), half.forward_args()); },
      [](auto& half) { attention_backward(half.problem(), half.backward_args()); }, 0x1p-7, 0x1p-6);
}

TEST_P(AttentionBf16, GivesFiniteNumbersOrNaN) {
  expect_finite_or_nan<Bf16>(run_chosen<Bf16>, 0x1p-7);
}

TEST_P(AttentionBf16, NeverUsesMaskedValues) {
  CaseSettings settings = settings_of(1, 1, 71, 91, 7);
  settings.key_mask = settings.query_mask = true;
  AttentionCase<Bf16> clean(settings), dirty(settings);
  spoil_masked(dirty);
  run_chosen(dirty);
  run_chosen(clean);
  expect_same_results(dirty, clean, 0, 0);
}

TEST_P(AttentionBf16, MaskedQueriesNeverMeetInfiniteKeys) {
  for (const int64_t queries : {1, 9, 40}) {
    CaseSettings settings = settings_of(2, 1, queries, 20, 7);
    settings.query_mask = true;
    AttentionCase<Bf16> c(settings);
    std::fill(c.query_mask.begin(), c.query_mask.end(), uint8_t{0});
    for (size_t i = 0; i < c.k.size(); i += 7)
      c.k[i] = Bf16(-std::numeric_limits<float>::infinity());
    run_chosen(c);
    for (const auto* grads : {&c.grad_q, &c.grad_k, &c.grad_v}) {
      EXPECT_EQ(floats(*grads), std::vector<float>(grads->size(), 0.0f)) << queries << " queries";
    }
  }
}

LRA_INSTANTIATE_IMPLEMENTATIONS(AttentionBf16, Isa::kRef, LRA_VECTOR_ISAS, Isa::kAvx512Bf16,
                                Isa::kAmx, Isa::kAmxEmulated);

TEST(AttentionOnTiles, EmulationHasTheBitsOfTheProcessor) {
  if (const std::string why = why_untested(Isa::kAmx); !why.empty()) GTEST_SKIP() << why;
  for (const CaseSettings& settings : all_cases()) {
    SCOPED_TRACE(settings.describe());
    AttentionCase<Bf16> real(settings), emulated(settings);
    for (auto* c : {&real, &emulated}) {
      const KernelsVariable forced(c == &real ? "amx" : "amx_emulated");
      run_chosen(*c);
    }
    expect_same_results(emulated, real, 0, 0);
  }
}

TEST(Attention, DropsWeightsAtTheRequestedRate) {
  // Equal scores and values of one make an output the kept fraction divided by the keep rate.
  for (const double rate : {0.1, 0.5}) {
    CaseSettings settings = settings_of(1, 1, 512, 512, 1);
    settings.dropout_rate = rate;
    AttentionCase<float> c(settings);
    std::fill(c.q.begin(), c.q.end(), 0.0f);
    std::fill(c.v.begin(), c.v.end(), 1.0f);
    attention_forward(c.problem(), c.forward_args());
    double mean = 0;
    for (const float x : c.out) mean += x / 512;
    // Five standard deviations of the mean of 512 * 512 decisions.
    EXPECT_NEAR(mean, 1.0, 5 * std::sqrt(rate / (1 - rate)) / 512);
    EXPECT_NE(c.out[0], c.out[1]);
  }
}

TEST(Attention, GivesZeroToQueriesThatSeeNoKey) {
  CaseSettings settings = settings_of(1, 1, 20, 20, 4);
  AttentionCase<float> c(settings);
  AttentionProblem problem = c.problem();
  const std::vector<uint8_t> none(20, 0);
  problem.visible.key_mask = none.data();
  attention_forward(problem, c.forward_args());
  attention_backward(problem, c.backward_args());
  for (const auto* x : {&c.out, &c.grad_q, &c.grad_k, &c.grad_v}) {
    EXPECT_EQ(*x, std::vector<float>(80, 0.0f));
  }
  EXPECT_EQ(c.largest, std::vector<float>(20, -std::numeric_limits<float>::infinity()));
  EXPECT_EQ(c.sum, std::vector<float>(20, 0.0f));
}

TEST(Attention, RefusesMalformedProblems) {
  const auto expect_refused = [](const std::function<void(AttentionProblem&)>& spoil) {
    CaseSettings settings = settings_of(1, 1, 20, 20, 4);
    settings.query_block = settings.key_block = 10;
    AttentionCase<float> c(settings);
    c.offsets = {0, 1, 2};
    c.key_blocks = {0, 1};
    AttentionProblem problem = c.problem();
    EXPECT_NO_THROW(attention_forward(problem, c.forward_args()));
    spoil(problem);
    EXPECT_THROW(attention_forward(problem, c.forward_args()), CheckFailure);
    EXPECT_THROW(attention_backward(problem, c.backward_args()), CheckFailure);
  };
  expect_refused([](AttentionProblem& p) { p.shape.head_dim = 0; });
  expect_refused([](AttentionProblem& p) { p.shape.key_length = 10; });  // block 1 is out of range
  expect_refused([](AttentionProblem& p) { p.dropout_rate = 1; });
  expect_refused([](AttentionProblem& p) { p.visible.left = -2; });
  BlockLists two_lists;  // of one plane
  expect_refused([&](AttentionProblem& p) {
    two_lists = *p.visible.blocks;
    two_lists.lists = 2;
    p.visible.blocks = &two_lists;
  });
  const SortedRuns of_another_length{nullptr, 19, 0}, beside_blocks{nullptr, 20, 0};
  expect_refused([&](AttentionProblem& p) { p.visible.runs = &beside_blocks; });
  expect_refused([&](AttentionProblem& p) {
    p.visible.blocks = nullptr;
    p.visible.runs = &of_another_length;
  });
  std::vector<int32_t> data(60, 0);
  data[45] = 21;  // the end of a run
  const SortedRuns beyond{data.data(), 20, 0};
  expect_refused([&](AttentionProblem& p) {
    p.visible.blocks = nullptr;
    p.visible.runs = &beyond;
  });
}

LRA_INSTANTIATE_IMPLEMENTATIONS(AttentionFloat, Isa::kRef, LRA_VECTOR_ISAS);

}  // namespace
}  // namespace lra::kernels

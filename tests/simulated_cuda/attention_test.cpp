// Attention on a simulated CUDA device against the double reference, on the problems that the CPU's
// implementations are tested on.
#include "kernels/attention/attention.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "kernels/attention/attention_test_case.h"
#include "kernels/attention/attention_test_results.h"
#include "kernels/attention/attention_test_settings.h"
#include "kernels/cuda/kernels.h"

namespace lra::kernels {
namespace {

cuda::ListForm form_of(const AttentionProblem& problem) {
  if (problem.visible.blocks == nullptr) return cuda::ListForm::kListed;
  return cuda::form_of(*problem.visible.blocks, problem.shape.query_length,
                       problem.shape.key_length);
}

template <typename T>
void run_backward_on_device(AttentionCase<T>& c) {
  const AttentionProblem problem = c.problem();
  const cuda::ListForm form = form_of(problem);
  cuda::TransposedLists lists;
  cuda::AttentionScratch scratch;
  if (problem.visible.blocks != nullptr && form == cuda::ListForm::kListed) {
    lists = cuda::transpose(*problem.visible.blocks, c.shape.query_length, c.shape.key_length);
    scratch = {lists.offsets.data(), lists.query_blocks.data()};
  }
  std::vector<float> mean(c.sum.size());
  scratch.mean = mean.data();
  std::vector<float> by_distance;
  if (c.settings.relative) {
    by_distance.resize(cuda::relative_bias_scratch(problem, form), std::nanf(""));
    scratch.by_distance = by_distance.data();
  }
  cuda::attention_backward(problem, form, c.backward_args(), scratch, nullptr);
}

template <typename T>
void run_on_device(AttentionCase<T>& c) {
  cuda::attention_forward(c.problem(), form_of(c.problem()), c.forward_args(), nullptr);
  run_backward_on_device(c);
}

std::vector<CaseSettings> device_cases() {
  std::vector<CaseSettings> cases = all_cases();
  std::erase_if(cases, [](const CaseSettings& s) { return s.shape.head_dim > cuda::kMaxHeadDim; });
  return cases;
}

TEST(SimulatedCudaAttention, FloatKeepsTheErrorContract) {
  for (const CaseSettings& settings : device_cases()) {
    SCOPED_TRACE(settings.describe());
    AttentionCase<float> got(settings);
    AttentionCase<double> want(settings);
    run_on_device(got);
    run_reference(want);
    expect_same_results(got, want, 1e-5, 1e-4);
    if (HasFailure()) return;
  }
}

TEST(SimulatedCudaAttention, Bf16KeepsTheErrorContract) {
  for (CaseSettings settings : device_cases()) {
    settings.bf16_values = true;
    SCOPED_TRACE(settings.describe());
    AttentionCase<Bf16> got(settings);
    AttentionCase<double> want(settings);
    run_on_device(got);
    run_reference(want);
    expect_same_results(got, want, 0x1p-7, 0x1p-6);
    if (HasFailure()) return;
  }
}

// A case with lists that need no arrays.
template <typename T>
AttentionCase<T> formed_case(CaseSettings settings, cuda::ListForm form) {
  AttentionCase<T> c(settings);
  const auto rows =
                 static_cast<int32_t>((settings.shape.query_length - 1) / settings.query_block + 1),
             columns =
                 static_cast<int32_t>((settings.shape.key_length - 1) / settings.key_block + 1);
  c.offsets = {0};
  c.key_blocks.clear();
  for (int32_t row = 0; row < rows; ++row) {
    const bool diagonal = form == cuda::ListForm::kDiagonal;
    for (int32_t n = diagonal ? row : 0; n < (diagonal ? row + 1 : std::min(row, columns)); ++n) {
      c.key_blocks.push_back(n);
    }
    c.offsets.push_back(static_cast<int64_t>(c.key_blocks.size()));
  }
  return c;
}

template <typename T>
void expect_forms_keep_the_contract(double value, double gradient) {
  struct Sizes {
    int64_t queries, keys, query_block, key_block;
  };
  for (const Sizes& s : {Sizes{300, 60, 50, 10},
                         {300, 56, 50, 10},
                         {130, 130, 64, 64},
                         {200, 7, 3, 1},
                         {64, 200, 100, 3},
                         {97, 97, 10, 10}}) {
    for (const cuda::ListForm form : {cuda::ListForm::kDiagonal, cuda::ListForm::kStairs}) {
      for (const bool rules : {false, true}) {
        CaseSettings settings = settings_of(2, 2, s.queries, s.keys, 20);
        settings.query_block = s.query_block;
        settings.key_block = s.key_block;
        settings.key_mask = settings.query_mask = settings.grad_logsumexp = rules;
        settings.right = rules ? 30 : -1;
        settings.dropout_rate = rules ? 0.2 : 0;
        settings.bias = settings.relative = s.keys == 60;
        settings.bf16_values = std::is_same_v<T, Bf16>;
        SCOPED_TRACE(settings.describe());
        auto got = formed_case<T>(settings, form);
        auto want = formed_case<double>(settings, form);
        const int64_t rows = (s.queries - 1) / s.query_block + 1;
        const bool fits = form == cuda::ListForm::kStairs || rows <= (s.keys - 1) / s.key_block + 1;
        if (!fits) continue;
        EXPECT_EQ(form_of(got.problem()), form);
        run_on_device(got);
        run_reference(want);
        expect_same_results(got, want, value, gradient);
      }
    }
  }
}

TEST(SimulatedCudaAttention, FormsOfListsKeepTheErrorContract) {
  expect_forms_keep_the_contract<float>(1e-5, 1e-4);
  expect_forms_keep_the_contract<Bf16>(0x1p-7, 0x1p-6);
}

TEST(SimulatedCudaAttention, GivesTheGradientOfAPartOfASoftmax) {
  expect_gradients_of_parts(run_on_device<float>, run_backward_on_device<float>);
}

TEST(SimulatedCudaAttention, MergesPartsOfLargeScores) {
  const auto forward = [](auto& half) {
    cuda::attention_forward(half.problem(), form_of(half.problem()), half.forward_args(), nullptr);
  };
  const auto backward = [](auto& half) { run_backward_on_device(half); };
  expect_halves_of_large_scores_add_up<float>(forward, backward, 2e-6, 2e-6);
  expect_halves_of_large_scores_add_up<Bf16>(forward, backward, 0x1p-7, 0x1p-6);
}

TEST(SimulatedCudaAttention, GivesFiniteNumbersOrNaN) {
  expect_finite_or_nan<float>(run_on_device<float>, 1e-5);
  expect_finite_or_nan<Bf16>(run_on_device<Bf16>, 0x1p-7);
}

TEST(SimulatedCudaAttention, RefusesHeadsThatDoNotFit) {
  struct SmallerGpu {  // compute capability 8.6
    int before = std::exchange(simulated::most_shared_bytes, 99 << 10);
    ~SmallerGpu() { simulated::most_shared_bytes = before; }
  } gpu;
  AttentionCase<float> fits(settings_of(1, 1, 5, 5, 80)), wide(settings_of(1, 1, 5, 5, 81));
  EXPECT_NO_THROW(run_on_device(fits));
  EXPECT_THROW(run_on_device(wide), Error);
  AttentionCase<Bf16> too_wide(settings_of(1, 1, 5, 5, 129));
  EXPECT_THROW(run_on_device(too_wide), Error);
}

}  // namespace
}  // namespace lra::kernels

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

template <typename T>
void run_backward_on_device(AttentionCase<T>& c) {
  const AttentionProblem problem = c.problem();
  cuda::TransposedLists lists;
  cuda::AttentionScratch scratch;
  if (problem.visible.blocks != nullptr) {
    lists = cuda::transpose(*problem.visible.blocks, c.shape.query_length, c.shape.key_length);
    scratch = {lists.offsets.data(), lists.query_blocks.data()};
  }
  std::vector<float> mean(c.sum.size());
  scratch.mean = mean.data();
  cuda::attention_backward(problem, c.backward_args(), scratch, nullptr);
}

template <typename T>
void run_on_device(AttentionCase<T>& c) {
  cuda::attention_forward(c.problem(), c.forward_args(), nullptr);
  run_backward_on_device(c);
}

std::vector<CaseSettings> device_cases() {
  std::vector<CaseSettings> cases = all_cases();
  std::erase_if(cases, [](const CaseSettings& s) {
    return s.shape.head_dim > cuda::kMaxHeadDim || is_for_the_cpu_only(s);
  });
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

TEST(SimulatedCudaAttention, GivesTheGradientOfAPartOfASoftmax) {
  expect_gradients_of_parts(run_on_device<float>, run_backward_on_device<float>);
}

TEST(SimulatedCudaAttention, MergesPartsOfLargeScores) {
  const auto forward = [](auto& half) {
    cuda::attention_forward(half.problem(), half.forward_args(), nullptr);
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

#include "analysis/efficiency.h"

#include <gtest/gtest.h>

#include "base/scratch_folder.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

TEST(Efficiency, MeasuresTrainingAndInference) {
  const training::OneThread one_thread;
  for (const bool train : {true, false}) {
    const Measurement m = measure(
        training::tiny_run(),
        {.train = train, .batch = 3, .warmup_steps = 1, .windows = 4, .window_seconds = 0.01});
    EXPECT_EQ(m.mode, train ? "train" : "infer");
    EXPECT_EQ(m.dtype, "fp32");
    EXPECT_EQ(m.length, 40);
    EXPECT_EQ(m.batch, 3);
    EXPECT_EQ(m.windows, 4);
    EXPECT_GT(m.slowest_steps_per_s, 0);
    EXPECT_LE(m.slowest_steps_per_s, m.steps_per_s);
    EXPECT_LE(m.steps_per_s, m.fastest_steps_per_s);
    EXPECT_DOUBLE_EQ(m.tokens_per_s, m.steps_per_s * 3 * 40);
    EXPECT_GT(m.peak_resident_bytes, int64_t{1} << 20);
    EXPECT_GT(flops_utilisation(m), 0);
    EXPECT_LT(flops_utilisation(m), 1);
    EXPECT_FALSE(m.pipeline_steps_per_s);
  }
}

TEST(Efficiency, MeasuresWithDataToo) {
  const training::OneThread one_thread;
  const ScratchFolder folder;
  for (const bool train : {true, false}) {
    const Measurement m = measure(training::tiny_run(), {.train = train,
                                                         .batch = 3,
                                                         .warmup_steps = 0,
                                                         .windows = 2,
                                                         .window_seconds = 0.01,
                                                         .data_root = folder.path()});
    EXPECT_GT(m.pipeline_steps_per_s.value(), 0);
  }
}

TEST(Efficiency, TakesAtLeastOneStepPerWindow) {
  const training::OneThread one_thread;
  const Measurement m =
      measure(training::tiny_run({"task.length=1000"}, "linformer"),
              {.train = true, .batch = 1, .warmup_steps = 0, .windows = 1, .window_seconds = 0});
  EXPECT_GT(m.steps_per_s, 0);
  EXPECT_EQ(m.slowest_steps_per_s, m.fastest_steps_per_s);
}

TEST(Efficiency, TimesLongStepsInPartsOfTheirSequences) {
  const training::OneThread one_thread;
  // Windows of no time: every step is long.
  EfficiencyOptions options{.batch = 24, .windows = 3, .window_seconds = 0};
  const Measurement m = measure(training::tiny_run(), options);
  EXPECT_EQ(m.parts, 4);  // of six sequences; eight would have three
  EXPECT_EQ(m.batch, 24);
  EXPECT_DOUBLE_EQ(m.tokens_per_s, m.steps_per_s * 24 * 40);
  options.batch = 128;
  EXPECT_EQ(measure(training::tiny_run(), options).parts, 8);
  options.batch = 7;
  EXPECT_FALSE(measure(training::tiny_run(), options).parts);
  options = {.batch = 24, .windows = 3, .window_seconds = 0, .whole_steps = true};
  EXPECT_FALSE(measure(training::tiny_run(), options).parts);
}

}  // namespace
}  // namespace lra::analysis

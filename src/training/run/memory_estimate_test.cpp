#include "training/run/memory_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_folder.h"
#include "data/test_fixtures.h"
#include "ops/test_tensors.h"
#include "training/run/make_model.h"
#include "training/run/tensor_memory.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr TaskShape kShape{.length = 1024, .vocabulary = 16, .num_classes = 4};

class Estimating : public ::testing::Test {
 protected:
  Estimating() {
    keep_tensors_in_arena();  // as the program does
    std::vector<TestExample> examples;
    for (const size_t length : {30u, 900u, 400u}) {
      examples.push_back({1, {std::vector<uint8_t>(length, 3)}});
    }
    split_ = write_split(scratch_.file("data"), examples);
  }

  // Bytes beyond what a batch of one takes.
  int64_t estimate(const std::vector<std::string>& sets) const {
    std::vector<std::string> all = {"model.layers=4",      "model.embed_dim=64",
                                    "model.qkv_dim=64",    "model.mlp_dim=256",
                                    "train.batch_size=64", "train.eval_batch_size=1"};
    all.insert(all.end(), sets.begin(), sets.end());
    const RunConfig run = tiny_run(all, "local");
    const models::SequenceClassifier model = make_model(run, kShape);
    FlatParameters parameters(model);
    const at::Tensor before = parameters.values.clone();
    Stepper stepper(model, parameters, run.train, 1);
    const MemoryEstimate found =
        estimate_memory(model, stepper, split_, kShape, run.train, run.seed);
    EXPECT_TRUE(at::equal(parameters.values, before));
    EXPECT_EQ(parameters.m.abs().sum().item<double>(), 0);
    EXPECT_LE(found.extra_bytes, found.peak_bytes);
    return found.extra_bytes;
  }

  OneThread one_thread_;
  ScratchFolder scratch_;
  Split split_;
};

TEST_F(Estimating, FollowsWhatSavesMemory) {
  const auto whole = static_cast<double>(estimate({}));
  // Activations of 64 examples of 443 tokens on average: at least what goes into the four blocks.
  EXPECT_GT(whole, 64.0 * 443 * 64 * 4 * 4);
  EXPECT_NEAR(static_cast<double>(estimate({"train.batch_size=128"})), 2 * whole, 0.3 * whole);
  EXPECT_NEAR(static_cast<double>(estimate({"train.accumulate=4"})), whole / 4, 0.15 * whole);
  EXPECT_LT(static_cast<double>(estimate({"train.recompute=true"})), 0.7 * whole);
  EXPECT_LT(static_cast<double>(estimate({"train.precision=bf16"})), 0.8 * whole);
  EXPECT_GT(static_cast<double>(estimate({"train.eval_batch_size=4096"})), 2 * whole);
}

// A third of the examples is 30 tokens long, a third 400, so a batch takes about half of the memory
// of one that is padded.
TEST_F(Estimating, CountsThePositionsThatAreComputed) {
  const auto grouped = static_cast<double>(estimate({}));
  const auto padded = static_cast<double>(estimate({"train.trim_padding=false"}));
  EXPECT_LT(grouped, 0.6 * padded);
  EXPECT_GT(grouped, 0.35 * padded);
}

TEST_F(Estimating, CountsNothingThatIsFree) {
  const int64_t clean = estimate({});
  { const at::Tensor left = at::ones({int64_t{300} << 18}); }  // 300 MiB, resident and free
  EXPECT_NEAR(static_cast<double>(estimate({})), static_cast<double>(clean), 100e6);
}

TEST(RefuseWithoutMemory, SaysWhatIsMissingAndWhatHelps) {
  EXPECT_NO_THROW(
      refuse_without_memory({.peak_bytes = 3'000'000, .extra_bytes = 2'000'000}, 2'000'000));
  EXPECT_THAT(
      error_of([] {
        refuse_without_memory({.peak_bytes = 3'000'000, .extra_bytes = 2'000'000}, 1'999'999);
      }),
      AllOf(HasSubstr("about 3.0 MB"), HasSubstr("2.0 MB more"), HasSubstr("train.accumulate"),
            HasSubstr("train.batch_size"), HasSubstr("train.recompute=true"), HasSubstr("bf16"),
            HasSubstr("train.memory_check=warn")));
}

}  // namespace
}  // namespace lra::training

// The analyses of a model on a device: the figures of the CPU.
#include <gtest/gtest.h>

#include "analysis/efficiency.h"
#include "analysis/embeddings.h"
#include "analysis/flop_count.h"
#include "analysis/rollout.h"
#include "analysis/span.h"
#include "stand_in.h"
#include "training/run/make_model.h"
#include "training/run/test_runs.h"

namespace lra::analysis {
namespace {

using training::tiny_run;

const at::Tensor& tokens() {
  static const at::Tensor ids =
      at::arange(37, at::kInt).remainder(15).add(1).to(at::kInt).unsqueeze(0);
  return ids;
}

training::RunConfig run_of(const std::string& model) {
  std::vector<std::string> sets = {"model.layers=2", "model.pooling=cls"};
  if (model == "synthesizer") sets.push_back("mixer.variant=factorized_dense");
  if (model == "local" || model == "sinkhorn") sets.push_back("mixer.block=8");
  if (model == "reformer") sets.push_back("mixer.chunk=4");
  return tiny_run(sets, model);
}

class AnalysesOnADevice : public testing::TestWithParam<const char*> {
 protected:
  const training::OneThread one_thread_;
};

TEST_P(AnalysesOnADevice, FindWhatTheyFindOnTheCpu) {
  const training::RunConfig run = run_of(GetParam());
  const auto figures = [&](at::Device device) {
    const auto model = training::make_model(run, run.make_task()->shape(), device);
    const AttentionWeights attention(model, run.model_config, run.mixer_spec(), GetParam());
    SpanSums sums(attention, 0);
    sums.add(tokens());
    const Embeddings embeddings = embeddings_of(model, true);
    return std::tuple(sums.result(), rollout(attention, tokens(), "cls"),
                      cosine_similarity(embeddings.token_VD),
                      cosine_similarity(embeddings.position_PD));
  };
  const auto here = figures(at::kCPU), there = figures(stand_in());
  EXPECT_EQ(std::get<0>(here).tokens.heads, std::get<0>(there).tokens.heads);
  EXPECT_TRUE(at::equal(std::get<1>(here), std::get<1>(there)));
  EXPECT_TRUE(at::equal(std::get<2>(here), std::get<2>(there)));
  EXPECT_TRUE(at::equal(std::get<3>(here), std::get<3>(there)));
}

INSTANTIATE_TEST_SUITE_P(Some, AnalysesOnADevice,
                         testing::Values("transformer", "local", "reformer", "synthesizer",
                                         "performer"));

TEST(EfficiencyOnADevice, IsMeasured) {
  const training::OneThread one_thread;
  for (const bool train : {true, false}) {
    const Measurement m = measure(tiny_run(), {.device = stand_in(),
                                               .train = train,
                                               .batch = 3,
                                               .warmup_steps = 1,
                                               .windows = 2,
                                               .window_seconds = 0.01});
    EXPECT_GT(m.steps_per_s, 0);
    EXPECT_GT(m.peak_tensor_bytes, 1000);
    EXPECT_GT(flops_utilisation(m), 0);
  }
}

TEST(FlopCountOnADevice, IsThatOfTheCpu) {
  for (const char* name :
       {"transformer", "bigbird", "reformer", "sinkhorn", "linear_transformer"}) {
    const training::RunConfig run = run_of(name);
    const auto flops = [&](at::Device device) {
      const auto model = training::make_model(run, run.make_task()->shape(), device);
      return forward_flops(model, {.tokens_BL = tokens().to(device), .lengths_B = {}});
    };
    EXPECT_EQ(flops(at::kCPU), flops(stand_in())) << name;
  }
}

}  // namespace
}  // namespace lra::analysis

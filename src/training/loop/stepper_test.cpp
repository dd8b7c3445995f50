#include "training/loop/stepper.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/scratch_folder.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/test_tensors.h"
#include "training/run/memory_estimate.h"
#include "training/run/tensor_memory.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

constexpr TaskShape kStepperShape{.length = 160, .vocabulary = 16, .num_classes = 4};
constexpr int64_t kStepperExamples = 7;

class Stepping : public ::testing::Test {
 protected:
  // Lengths from 3 to 150: each micro-batch is padded to another one.
  Stepping() {
    std::vector<TestExample> examples;
    RandomStream random(4);
    for (const int64_t length : {3, 150, 40, 8, 70, 90, 20}) {
      std::vector<uint8_t> tokens(static_cast<size_t>(length));
      for (uint8_t& token : tokens) token = static_cast<uint8_t>(random.below(15));
      examples.push_back({static_cast<int32_t>(random.below(4)), {tokens}});
    }
    split_ = write_split(scratch_.file("data"), examples);
  }

  std::vector<Batch> parts(int64_t count) const {
    BatchLoader loader(split_, kStepperShape, BatchOrder(kStepperExamples, kStepperExamples, 1), 0,
                       {.parts = {.count = count, .of = count}});
    return loader.next();
  }

  struct Run {
    explicit Run(const std::vector<std::string>& sets, const std::string& model = "transformer")
        : config(tiny_run(sets, model)),
          model(kStepperShape, config.model_config, config.mixer_spec(), config.mixer_settings, 1),
          parameters(this->model),
          stepper(this->model, parameters, config.train, config.seed) {}
    RunConfig config;
    models::SequenceClassifier model;
    FlatParameters parameters;
    Stepper stepper;
  };

  OneThread one_thread_;
  ScratchFolder scratch_;
  Split split_;
};

std::vector<std::string> without_randomness(const std::string& model) {
  // Batch norm sees the micro-batch, not the step.
  std::vector<std::string> sets = {"model.dropout=0", "model.attention_dropout=0",
                                   "model.norm=layer"};
  if (model == "sinkhorn") sets.emplace_back("mixer.noise=false");
  return sets;
}

TEST_F(Stepping, InMicroBatchesGivesTheGradientsOfTheWholeBatch) {
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    const std::string name(spec->name);
    Run run(without_randomness(name), name);
    const StepLoss whole = run.stepper.gradients(parts(1), 3);
    const at::Tensor expected = run.parameters.gradients.clone();
    for (const int64_t count : {2, 3, 7}) {
      SCOPED_TRACE(testing::Message() << name << " in " << count);
      const StepLoss cut = run.stepper.gradients(parts(count), 3);
      EXPECT_LE(ops::relative_error(run.parameters.gradients, expected), 2e-5);
      EXPECT_NEAR(cut.loss_sum, whole.loss_sum, 1e-5 * whole.loss_sum);
      EXPECT_NEAR(cut.gradient_norm, whole.gradient_norm, 1e-4 * whole.gradient_norm);
      EXPECT_EQ(cut.correct, whole.correct);
      EXPECT_EQ(cut.examples, whole.examples);
      EXPECT_EQ(cut.tokens, whole.tokens);
      EXPECT_LT(cut.computed_tokens, whole.computed_tokens) << "short examples are padded less";
    }
  }
}

TEST_F(Stepping, InOnePartGivesTheBitsOfThePlainLoss) {
  Run run({"model.dropout=0.2"});
  const Batch batch = parts(1)[0];
  const StepLoss step = run.stepper.gradients(parts(1), 3);
  const at::Tensor gradients = run.parameters.gradients.clone();
  run.parameters.zero_gradients();
  const at::Tensor logits =
      run.model.forward(batch.input, {.training = true, .seed = run.config.seed, .step = 3});
  const at::Tensor loss = at::cross_entropy_loss(logits, batch.labels_B);
  loss.backward();
  EXPECT_TRUE(at::equal(run.parameters.gradients, gradients));
  EXPECT_EQ(step.mean(), loss.item<double>());
}

TEST_F(Stepping, DropsNothingAlikeInTwoMicroBatches) {
  const auto gradients = [&](const std::vector<std::string>& sets, int64_t copies) {
    Run run(sets);
    (void)run.stepper.gradients(std::vector<Batch>(static_cast<size_t>(copies), parts(1)[0]), 3);
    return run.parameters.gradients;
  };
  // Twice the same examples: the same mean gradient, unless the second half is dropped otherwise.
  EXPECT_LE(ops::relative_error(gradients({"model.dropout=0", "model.attention_dropout=0"}, 2),
                                gradients({"model.dropout=0", "model.attention_dropout=0"}, 1)),
            1e-5);
  for (const char* place : {"model.dropout=0.3", "model.attention_dropout=0.3"}) {
    const char* other = place[6] == 'd' ? "model.attention_dropout=0" : "model.dropout=0";
    EXPECT_GT(ops::relative_error(gradients({place, other}, 2), gradients({place, other}, 1)), 1e-2)
        << place;
  }
}

TEST_F(Stepping, InMicroBatchesTakesLessMemory) {
  Run run({"model.layers=3"});
  const auto peak = [&](int64_t count) {
    const auto batches = parts(count);
    const TensorMemory memory;
    (void)run.stepper.gradients(batches, 0);
    return memory.peak_bytes();
  };
  (void)peak(1);  // what is kept from the first step on
  EXPECT_LT(peak(7), peak(1) / 2);
}

TEST_F(Stepping, TakesAnUpdateBack) {
  Run run({"train.on_nonfinite=skip", "train.learning_rate=1e38", "train.weight_decay=100.0"});
  const at::Tensor before = run.parameters.values.clone();
  EXPECT_TRUE(run.parameters.weights_are_finite());
  EXPECT_FALSE(run.stepper.step(parts(1), 0, 0).weights_are_finite);
  EXPECT_FALSE(run.parameters.weights_are_finite());
  EXPECT_GT(run.parameters.m.abs().sum().item<double>(), 0);
  run.stepper.undo_step();
  EXPECT_TRUE(at::equal(run.parameters.values, before));
  EXPECT_EQ(run.parameters.m.abs().sum().item<double>(), 0);
  EXPECT_EQ(run.parameters.v.abs().sum().item<double>(), 0);
}

// Its buffer follows forward passes, as running statistics of a Python class do.
class PassCounter : public models::Model {
 public:
  PassCounter() {
    const layers::Initializer init(1);
    token_ = register_parameter("token", init.of("token").normal({16, 4}, 1));
    passes_ = register_buffer("passes", init.zeros({1}));
  }
  at::Tensor forward(const models::ModelInput& input, const models::StepRandom&) const override {
    passes_.add_(1);
    return at::embedding(token_, input.tokens_BL).mean(1);
  }
  at::Device device() const override { return at::kCPU; }
  double passes() const { return passes_.item<double>(); }

 private:
  at::Tensor token_, passes_;
};

TEST_F(Stepping, PutsBuffersBackThatFollowPasses) {
  const RunConfig config = tiny_run({"train.on_nonfinite=skip"});
  const PassCounter model;
  FlatParameters parameters(model);
  Stepper stepper(model, parameters, config.train, 1);
  (void)stepper.gradients(parts(2), 0);
  EXPECT_EQ(model.passes(), 2);
  stepper.update(0, 0);
  (void)stepper.gradients(parts(1), 1);
  EXPECT_EQ(model.passes(), 3);
  const at::Tensor updated = parameters.values.narrow(0, 0, 64).clone();
  stepper.undo_step();  // without an update
  EXPECT_EQ(model.passes(), 2);
  EXPECT_TRUE(at::equal(parameters.values.narrow(0, 0, 64), updated));
}

TEST_F(Stepping, MemoryIsEstimatedWithoutATraceInBuffers) {
  const RunConfig config = tiny_run({});
  const PassCounter model;
  FlatParameters parameters(model);
  Stepper stepper(model, parameters, config.train, 1);
  (void)estimate_memory(model, stepper, split_, kStepperShape, config.train, 1);
  EXPECT_EQ(model.passes(), 0);
}

}  // namespace
}  // namespace lra::training

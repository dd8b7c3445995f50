// A model with two groups of parameters and running statistics: what the optimizer, the checkpoints
// and a step that is thrown away make of them.
#include <gtest/gtest.h>

#include <cmath>

#include "base/scratch_folder.h"
#include "layers/linear.h"
#include "layers/norms.h"
#include "training/loop/stepper.h"
#include "training/run/checkpoint.h"

namespace lra::training {
namespace {

using at::Tensor;

// Pixels -> linear -> batch norm -> mean -> scores, whose offsets are in the group "slow".
class TinyNet : public models::Model {
 public:
  explicit TinyNet(uint64_t seed) {
    const layers::Initializer init(seed);
    in_ = add<layers::Linear>("in", init, 6, 1);
    norm_ = add<layers::BatchNorm>("norm", init, 6);
    offset_ = register_in_group("slow", "offset", init.of("offset").normal({3}, 1));
    out_ = add<layers::Linear>("out", init, 3, 6);
  }
  Tensor forward(const models::ModelInput& input, const models::StepRandom& random) const override {
    const layers::Context context{.training = random.training, .part = random.part};
    const Tensor x = norm_->forward(in_->forward(input.values_BLC), context);
    return out_->forward(at::relu(x).mean(1)) + offset_;
  }
  at::Device device() const override { return at::kCPU; }

 private:
  std::shared_ptr<layers::Linear> in_, out_;
  std::shared_ptr<layers::BatchNorm> norm_;
  Tensor offset_;
};

Batch batch_of(int64_t count, uint64_t seed) {
  RandomStream stream(seed);
  const Tensor values = at::empty({count, 10, 1}), labels = at::empty({count}, at::kLong);
  for (int64_t i = 0; i < values.numel(); ++i) {
    values.mutable_data_ptr<float>()[i] = static_cast<float>(2 + stream.normal());
  }
  for (int64_t i = 0; i < count; ++i) labels.mutable_data_ptr<int64_t>()[i] = stream.below(3);
  return {.input = {.values_BLC = values}, .labels_B = labels, .num_tokens = 10 * count};
}

TrainConfig plain_config() {
  TrainConfig config;
  config.schedule = "constant";
  config.warmup_steps = 0;
  config.learning_rate = 0.01;
  config.weight_decay = 0.5;
  config.on_nonfinite = "skip";
  return config;
}

class Groups : public ::testing::Test {
 protected:
  void step(Stepper& stepper, int64_t number) {
    const Batch batch = batch_of(8, static_cast<uint64_t>(number));
    (void)stepper.step(std::span(&batch, 1), number, number);
  }
  Tensor part(const FlatParameters& parameters, const std::string& name) const {
    for (const auto& p : parameters.saved()) {
      if (p.name == name) return p.tensor.detach().flatten();
    }
    ADD_FAILURE() << name;
    return {};
  }
};

TEST_F(Groups, LieTogetherInFrontOfTheBuffers) {
  const TinyNet net(1);
  const FlatParameters flat(net);
  std::vector<std::string> names;
  for (const auto& p : flat.saved()) names.push_back(p.name);
  const std::vector<std::string> expected = {"in.weight", "in.bias",           "norm.weight",
                                             "norm.bias", "out.weight",        "out.bias",
                                             "offset",    "norm.running_mean", "norm.running_var"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(flat.parts().size(), 7U);
  ASSERT_EQ(flat.segments().size(), 2U);
  EXPECT_EQ(flat.segments()[1].group, "slow");
  EXPECT_EQ(flat.segments()[1].count, 3);
  EXPECT_EQ(flat.gradients.numel(), flat.values.numel() - 12);
}

// The first update of Adam is learning rate times sign, plus decay.
TEST_F(Groups, HaveRateDecayAndScheduleOfTheirOwn) {
  const TinyNet net(1);
  FlatParameters flat(net);
  TrainConfig config = plain_config();
  const GroupConfigs groups = {
      {"slow", {.learning_rate = 0.004, .rate_factor = 0.5, .weight_decay = 0.25}}};
  Stepper stepper(net, flat, config, 1, one_rank(), groups);
  const Tensor offset = part(flat, "offset").clone(), weight = part(flat, "out.bias").clone();
  const Batch batch = batch_of(8, 0);
  (void)stepper.gradients(std::span(&batch, 1), 0);
  const Tensor gradient = flat.gradients.clone();
  stepper.update(0, 0);
  const Tensor sign_offset = gradient.narrow(0, flat.parts()[6].offset, 3).sign(),
               sign_bias = gradient.narrow(0, flat.parts()[5].offset, 3).sign();
  EXPECT_TRUE(at::allclose(part(flat, "offset"), offset - 0.002 * (sign_offset + 0.25 * offset),
                           1e-5, 1e-7));
  EXPECT_TRUE(
      at::allclose(part(flat, "out.bias"), weight - 0.01 * (sign_bias + 0.5 * weight), 1e-5, 1e-7));
}

TEST_F(Groups, OneGroupGivesTheBitsOfSeveralAlike) {
  const TinyNet one(1), two(1);
  FlatParameters flat_one(one), flat_two(two);
  const TrainConfig config = plain_config();
  Stepper plain(one, flat_one, config, 1);
  Stepper grouped(two, flat_two, config, 1, one_rank(), {{"slow", {.weight_decay = 0.5}}});
  for (int64_t n = 0; n < 3; ++n) {
    step(plain, n);
    step(grouped, n);
  }
  EXPECT_TRUE(at::equal(flat_one.values, flat_two.values));
}

// Statistics follow once a step, and not before it counts.
TEST_F(Groups, AStepThatIsThrownAwayLeavesNoTrace) {
  const TinyNet net(1), undisturbed(1);
  FlatParameters flat(net), other(undisturbed);
  Stepper stepper(net, flat, plain_config(), 1), straight(undisturbed, other, plain_config(), 1);
  for (int64_t n = 0; n < 3; ++n) {
    const Batch bad = batch_of(5, 100);
    (void)stepper.gradients(std::span(&bad, 1), n);  // and no update
    step(stepper, n);
    step(straight, n);
  }
  EXPECT_TRUE(at::equal(flat.values, other.values));
  EXPECT_GT(part(flat, "norm.running_mean").abs().sum().item<double>(), 0);
}

TEST_F(Groups, AnUpdateThatIsTakenBackTakesTheStatisticsBack) {
  const TinyNet net(1);
  FlatParameters flat(net);
  Stepper stepper(net, flat, plain_config(), 1);
  step(stepper, 0);
  const Tensor before = flat.values.clone();
  step(stepper, 1);
  EXPECT_FALSE(at::equal(flat.values, before));
  stepper.undo_step();
  EXPECT_TRUE(at::equal(flat.values, before));
}

TEST_F(Groups, BuffersAreSavedWithTheWeights) {
  const ScratchFolder scratch;
  const RunIdentity run{.task = "image", .model = "tiny", .config_hash = "c", .data_hash = "d"};
  const TinyNet net(1), fresh(2);
  FlatParameters flat(net), loaded(fresh);
  Stepper stepper(net, flat, plain_config(), 1);
  step(stepper, 0);
  const CheckpointStore store(scratch.path(), 1, {run});
  CheckpointStore(scratch.path(), 1, {run}).save(flat, {.step = 1}, false);
  EXPECT_EQ(store.load(1, loaded).step, 1);
  EXPECT_TRUE(at::equal(flat.values, loaded.values));
  EXPECT_TRUE(at::equal(flat.m, loaded.m));
  EXPECT_TRUE(at::equal(fresh.named_buffers()["norm.running_mean"],
                        net.named_buffers()["norm.running_mean"]))
      << "the model's own buffers are views";
}

// In evaluation a batch norm uses its running statistics: one example alone gives the same scores
// as among others.
TEST_F(Groups, EvaluationDoesNotDependOnTheBatch) {
  const TinyNet net(1);
  FlatParameters flat(net);
  Stepper stepper(net, flat, plain_config(), 1);
  for (int64_t n = 0; n < 5; ++n) step(stepper, n);
  const Batch batch = batch_of(4, 9);
  const Tensor all = net.forward(batch.input, {});
  const Tensor one = net.forward({.values_BLC = batch.input.values_BLC.narrow(0, 2, 1)}, {});
  EXPECT_TRUE(at::allclose(all[2], one[0], 1e-5, 1e-6));
}

}  // namespace
}  // namespace lra::training

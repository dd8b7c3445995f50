#include "training/ranks/flat_parameters.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/classifier.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

models::SequenceClassifier tiny_model() {
  const RunConfig run = tiny_run();
  return {run.make_task()->shape(), run.model_config, run.mixer_spec(), run.mixer_settings,
          run.seed};
}

at::Tensor loss_of(const models::SequenceClassifier& model) {
  const at::Tensor tokens = at::arange(2 * 32, at::kInt).remainder(16).view({2, 32});
  return at::cross_entropy_loss(model.forward({.tokens_BL = tokens}, {}),
                                at::tensor({3, 7}, at::kLong));
}

TEST(FlatParameters, KeepValuesNamesAndOrder) {
  const auto model = tiny_model(), untouched = tiny_model();
  const auto expected = untouched.parameter_list();
  const FlatParameters flat(model);
  ASSERT_EQ(flat.parts().size(), expected.size());
  int64_t offset = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& part = flat.parts()[i];
    EXPECT_EQ(part.name, expected[i].name);
    EXPECT_EQ(part.shape, expected[i].tensor.sizes().vec());
    EXPECT_EQ(part.offset, offset);
    const at::Tensor values = flat.values.narrow(0, part.offset, part.count).view(part.shape);
    EXPECT_TRUE(at::equal(values, expected[i].tensor)) << part.name;
    offset += part.count;
  }
  EXPECT_EQ(flat.values.numel(), model.num_parameters());
  for (const at::Tensor& moments : {flat.gradients, flat.m, flat.v}) {
    EXPECT_EQ(moments.numel(), offset);
    EXPECT_EQ(moments.count_nonzero().item<int64_t>(), 0);
  }
}

TEST(FlatParameters, AreWhatTheModelComputesWith) {
  const OneThread one_thread;
  const auto model = tiny_model();
  FlatParameters flat(model);
  const double before = loss_of(model).item<double>();
  flat.values.mul_(1.5);
  EXPECT_NE(loss_of(model).item<double>(), before);
  flat.values.zero_();
  EXPECT_NEAR(loss_of(model).item<double>(), std::log(10.0), 1e-6) << "all logits are zero";
}

TEST(FlatParameters, GatherTheGradientsOfTheModel) {
  const OneThread one_thread;
  const auto model = tiny_model(), untouched = tiny_model();
  FlatParameters flat(model);
  loss_of(untouched).backward();
  std::vector<at::Tensor> expected;
  for (const auto& [name, parameter, group] : untouched.parameter_list()) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    expected.push_back(parameter.grad().flatten());
  }
  const at::Tensor gradients = at::cat(expected);
  ASSERT_GT(gradients.abs().max().item<double>(), 0);
  loss_of(model).backward();
  EXPECT_TRUE(at::equal(flat.gradients, gradients));
  loss_of(model).backward();
  EXPECT_TRUE(at::equal(flat.gradients, 2 * gradients)) << "a second pass is added";
  flat.zero_gradients();
  EXPECT_EQ(flat.gradients.count_nonzero().item<int64_t>(), 0);
  loss_of(model).backward();
  EXPECT_TRUE(at::equal(flat.gradients, gradients));
  flat.release_gradients();
  loss_of(model).backward();
  loss_of(model).backward();
  flat.gather_gradients();
  EXPECT_TRUE(at::equal(flat.gradients, 2 * gradients));
  flat.release_gradients();
  flat.gather_gradients();
  flat.zero_gradients();  // checks that the model's gradients are views again
}

TEST(FlatParameters, NoticeAGradientThatWentElsewhere) {
  const auto model = tiny_model();
  FlatParameters flat(model);
  at::Tensor parameter = model.parameter_list().front().tensor;
  parameter.mutable_grad() = at::zeros_like(parameter);
  EXPECT_THROW(flat.zero_gradients(), CheckFailure);
}

}  // namespace
}  // namespace lra::training

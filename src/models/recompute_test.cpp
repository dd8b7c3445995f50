#include "models/recompute.h"

#include <cmath>

#include "io/toml.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/test_tensors.h"

namespace lra::models {
namespace {

using at::Tensor;

constexpr TaskShape kShape{.length = 40, .vocabulary = 11, .num_classes = 3};

struct Pass {
  Tensor logits;
  std::vector<Tensor> gradients;
};

// A training pass with padding and dropout, two blocks.
Pass pass_of(const mixers::LayerSpec& spec, const Execution& execution) {
  ModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.embed_dim = config.qkv_dim = 16;
  config.mlp_dim = 24;
  config.dropout = config.attention_dropout = 0.2;
  const SequenceClassifier model(kShape, config, spec, parse_toml("", "model.toml"), 1, execution);
  Tensor tokens = at::empty({3, 40}, at::kInt);
  RandomStream stream(7);
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(1 + stream.below(10));
  }
  Pass pass;
  pass.logits = model.forward({tokens, at::tensor({40, 17, 33}, at::kInt)},
                              {.training = true, .seed = 3, .step = 5, .part = 1});
  at::cross_entropy_loss(pass.logits, at::tensor({0, 2, 1}, at::kLong)).backward();
  for (const auto& item : model.parameter_list()) pass.gradients.push_back(item.tensor.grad());
  return pass;
}

TEST(Recompute, ChangesNoBitOfAnyModel) {
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << spec->name << " " << toString(type));
      const Pass kept = pass_of(*spec, {.activations = type}),
                 again = pass_of(*spec, {.activations = type, .recompute = true});
      EXPECT_TRUE(at::equal(again.logits, kept.logits));
      ASSERT_EQ(again.gradients.size(), kept.gradients.size());
      for (size_t i = 0; i < kept.gradients.size(); ++i) {
        ASSERT_EQ(again.gradients[i].defined(), kept.gradients[i].defined()) << i;
        if (!kept.gradients[i].defined()) continue;
        EXPECT_TRUE(at::equal(again.gradients[i], kept.gradients[i])) << i;
      }
    }
  }
}

// Calls of f(x) = w x, and whether autograd recorded them.
struct CountedProduct {
  Tensor w = at::full({1}, 2.0).requires_grad_();
  int calls = 0, recorded = 0;

  Tensor operator()(const Tensor& x) {
    ++calls;
    recorded += at::GradMode::is_enabled();
    return w * x;
  }
};

TEST(Recompute, RunsOnceForwardAndOnceBackward) {
  CountedProduct f;
  const Tensor x = at::full({3}, 5.0).requires_grad_();
  const Tensor y = recomputed(x, std::ref(f));
  EXPECT_EQ(f.calls, 1);
  y.sum().backward();
  EXPECT_EQ(f.calls, 2);
  EXPECT_EQ(f.recorded, 2) << "the same operators in both passes";
  EXPECT_TRUE(at::equal(x.grad(), at::full({3}, 2.0)));
  EXPECT_TRUE(at::equal(f.w.grad(), at::full({1}, 15.0)));
}

TEST(Recompute, OutsideOfAutogradIsThePlainCall) {
  CountedProduct f;
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(recomputed(at::full({3}, 5.0), std::ref(f)), at::full({3}, 10.0)));
  EXPECT_EQ(f.calls, 1);
  EXPECT_EQ(f.recorded, 0);
}

TEST(StepRandom, GivesEveryMicroBatchKeysOfItsOwn) {
  const StepRandom first{.training = true, .seed = 1, .step = 2};
  StepRandom second = first, plain = first;
  second.part = 1;
  EXPECT_NE(second.key(0, 1), first.key(0, 1));
  EXPECT_EQ(second.step_key(0, 1), first.step_key(0, 1));
  EXPECT_EQ(first.key(0, 1), plain.step_key(0, 1)) << "one part is the uncut step";
}

}  // namespace
}  // namespace lra::models

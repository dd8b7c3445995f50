#include "models/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/rng.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "models/classifier.h"
#include "ops/test_tensors.h"
#include "ops/test_threads.h"

namespace lra::models {
namespace {

using at::Tensor;
using Sizes = std::vector<std::pair<int64_t, int64_t>>;

Sizes sizes_of(const std::vector<RowGroup>& groups) {
  Sizes sizes;
  for (const RowGroup& group : groups) sizes.emplace_back(group.rows, group.length);
  return sizes;
}

int64_t cost_of(const std::vector<RowGroup>& groups, int64_t group_cost) {
  int64_t cost = 0;
  for (const RowGroup& group : groups) cost += group.rows * group.length + group_cost;
  return cost;
}

// Least cost of all cuts; a bit for each gap between two rows.
int64_t least_cost(const std::vector<int64_t>& lengths, int64_t longest, int64_t group_cost) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint32_t cuts = 0; cuts < 1u << (lengths.size() - 1); ++cuts) {
    int64_t cost = 0, rows = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      ++rows;
      if (i + 1 < lengths.size() && (cuts >> i & 1) == 0) continue;
      cost += rows * std::min((lengths[i] + 15) / 16 * 16, longest) + group_cost;
      rows = 0;
    }
    least = std::min(least, cost);
  }
  return least;
}

TEST(CutIntoGroups, FindsTheLeastCost) {
  RandomStream random(3);
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<int64_t> lengths(1 + random.below(10));
    for (int64_t& length : lengths) length = 1 + random.below(300);
    std::ranges::sort(lengths);
    for (const int64_t cost : {0, 40, 200, 2000}) {
      const auto groups = cut_into_groups(lengths, 290, cost);
      EXPECT_EQ(cost_of(groups, cost), least_cost(lengths, 290, cost));
      size_t row = 0;
      for (const RowGroup& group : groups) {
        row += static_cast<size_t>(group.rows);
        EXPECT_GE(group.length, std::min<int64_t>(lengths[row - 1], 290));
      }
      EXPECT_EQ(row, lengths.size());
    }
  }
}

TEST(CutIntoGroups, RoundsUpTo16AndNotPastTheBatch) {
  EXPECT_EQ(sizes_of(cut_into_groups(std::vector<int64_t>{0, 1, 16, 17, 45}, 45, 0)),
            (Sizes{{3, 16}, {1, 32}, {1, 45}}));
  EXPECT_EQ(sizes_of(cut_into_groups(std::vector<int64_t>{1, 16, 17, 45}, 45, 1000)),
            (Sizes{{4, 45}}));
}

TEST(Layout, SortsRowsAndTellsTheirPlaces) {
  const Tensor lengths_B = at::tensor({40, 5, 33, 16}, at::kInt);
  const Layout layout = layout_of(lengths_B, 41, 0, at::kCPU);
  EXPECT_EQ(sizes_of(layout.groups), (Sizes{{2, 16}, {2, 41}}));
  EXPECT_TRUE(at::equal(layout.rows_B, at::tensor({1, 3, 2, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(layout.rows_B.index_select(0, layout.places_B), at::arange(4)));
  EXPECT_EQ(layout.padding.mask_BL.sizes(), (std::vector<int64_t>{1, 2 * 16 + 2 * 41}));
  for (size_t g = 0; g < 2; ++g) {
    const auto& [mask_BL, lengths] = layout.groups[g].padding;
    EXPECT_TRUE(at::equal(mask_BL.sum(1).to(at::kInt), lengths));
    EXPECT_TRUE(mask_BL.select(1, 0).eq(1).all().item<bool>());
  }
  EXPECT_EQ(layout.padding.mask_BL.sum().item<int64_t>(), lengths_B.sum().item<int64_t>());
}

TEST(Layout, LeavesRowsAsTheyAreWhereGroupsDoNotPay) {
  const Tensor lengths_B = at::tensor({40, 5, 33, 16}, at::kInt);
  for (const std::optional<int64_t> cost : {std::optional<int64_t>(500), {}}) {
    const Layout layout = layout_of(lengths_B, 41, cost, at::kCPU);
    EXPECT_TRUE(layout.groups.empty());
    EXPECT_EQ(layout.padding.mask_BL.sizes(), (std::vector<int64_t>{4, 41}));
    EXPECT_EQ(num_positions(lengths_B, 41, cost), 4 * 41);
  }
  EXPECT_EQ(num_positions(lengths_B, 41, 0), 2 * 16 + 2 * 41);
  EXPECT_FALSE(layout_of(at::full({3}, 41, at::kInt), 41, 0, at::kCPU).padding.mask_BL.defined());
}

TEST(Layout, HasFewerGroupsOnAGpuAndMoreOfThemWhereALayerIsQuadratic) {
  EXPECT_EQ(group_cost_on(at::kCPU, 256, true), kGroupCost);
  EXPECT_EQ(group_cost_on(at::kCUDA, 256, false), 16384);
  EXPECT_EQ(group_cost_on(at::kCUDA, 256, true), 4096);
}

TEST(Layout, JoinsWhatItSplits) {
  const Layout layout = layout_of(at::tensor({40, 5, 33, 16}, at::kInt), 41, 0, at::kCPU);
  const Tensor x = ops::random_tensor({1, 2 * 16 + 2 * 41, 3}, 1);
  EXPECT_TRUE(at::equal(join(layout.split(x)), x));
  const Tensor doubled = layout.map(x, [](const Tensor& rows_BLD, const RowGroup& group, uint32_t) {
    EXPECT_EQ(rows_BLD.sizes(), (std::vector<int64_t>{group.rows, group.length, 3}));
    return 2 * rows_BLD;
  });
  EXPECT_TRUE(at::equal(doubled, 2 * x));
}

constexpr TaskShape kLayoutShape{.length = 120, .vocabulary = 11, .num_classes = 3};
const std::vector<int32_t> kLayoutLengths = {120, 7, 33, 90, 1, 31, 64, 88};

ModelInput layout_batch(int32_t padding = 0, const std::vector<int32_t>& lengths = kLayoutLengths) {
  const auto rows = static_cast<int64_t>(lengths.size());
  Tensor tokens = at::full({rows, kLayoutShape.length}, padding, at::kInt);
  RandomStream stream(7);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < lengths[static_cast<size_t>(row)]; ++i) {
      tokens[row][i] = static_cast<int32_t>(1 + stream.below(10));
    }
  }
  return {.tokens_BL = tokens, .lengths_B = at::tensor(lengths, at::kInt)};
}

struct LayoutPass {
  int64_t positions;
  double loss;
  Tensor logits;
  std::vector<std::pair<std::string, Tensor>> gradients;
};

struct LayoutCase {
  const mixers::LayerSpec* spec;
  std::string mixer = {};
  ModelConfig config = {};
  int64_t num_towers = 1;
};

LayoutPass pass_of(const LayoutCase& c, const Execution& execution, const ModelInput& input,
                   bool training = true) {
  TaskShape shape = kLayoutShape;
  shape.num_towers = c.num_towers;
  const SequenceClassifier model(shape, c.config, *c.spec, parse_toml(c.mixer, "mixer"), 1,
                                 execution);
  const Tensor logits =
      model.forward(input, {.training = training, .seed = 3, .step = 5, .part = 1});
  const Tensor loss =
      at::cross_entropy_loss(logits, at::arange(logits.size(0), at::kLong).remainder(3));
  loss.backward();
  LayoutPass pass{model.num_positions(input), loss.item<double>(), logits.detach(), {}};
  for (const auto& [name, parameter, group] : model.parameter_list()) {
    pass.gradients.emplace_back(name, parameter.grad());
  }
  return pass;
}

ModelConfig layout_config(double dropout) {
  ModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.embed_dim = config.qkv_dim = 16;
  config.mlp_dim = 24;
  config.dropout = config.attention_dropout = dropout;
  return config;
}

std::vector<LayoutCase> layout_cases(double dropout) {
  std::vector<LayoutCase> cases;
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    const bool noisy = spec->name == "sinkhorn";
    cases.push_back({spec, noisy ? "noise = false" : "", layout_config(dropout)});
  }
  cases.push_back({&mixers::kLocal, "groups = 'strided'\nblock = 9", layout_config(dropout)});
  cases.push_back({&mixers::kBigBird, "block = 8\nrandom_blocks = 2", layout_config(dropout)});
  for (const char* variant : {"random", "dense", "factorized_dense"}) {
    cases.push_back({&mixers::kSynthesizer, "variant = '" + std::string(variant) + "'",
                     layout_config(dropout)});
  }
  const auto changed = [&](auto change, int64_t towers = 1) {
    LayoutCase c{&mixers::kTransformer, "", layout_config(dropout), towers};
    change(c.config);
    cases.push_back(c);
  };
  changed([](ModelConfig& c) { c.pooling = "mean"; });
  changed([](ModelConfig& c) { c.pooling = "first"; }, 2);
  changed([](ModelConfig& c) { c.norm = "batch"; });
  changed([](ModelConfig& c) { c.positions = "learned", c.feed_forward = "glu"; }, 2);
  changed([](ModelConfig& c) { c.norm_placement = "post", c.dropout_kind = "tied"; });
  return cases;
}

TEST(GroupsOfRows, ChangeNoResultOfAnyModelBeyondRounding) {
  for (const LayoutCase& c : layout_cases(0)) {
    SCOPED_TRACE(testing::Message() << c.spec->name << " " << c.mixer << " " << c.config.pooling
                                    << " " << c.config.norm);
    const LayoutPass whole = pass_of(c, {.group_cost = {}}, layout_batch());
    const LayoutPass grouped = pass_of(c, {.group_cost = 10}, layout_batch());
    EXPECT_LT(grouped.positions, whole.positions) << "there are no groups";
    EXPECT_NEAR(grouped.loss, whole.loss, 1e-5 * whole.loss);
    EXPECT_LE(ops::relative_error(grouped.logits, whole.logits), 1e-5);
    double largest = 0;
    for (const auto& [name, grad] : whole.gradients) {
      if (grad.defined()) largest = std::max(largest, grad.abs().max().item<double>());
    }
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      SCOPED_TRACE(whole.gradients[i].first);
      ASSERT_EQ(grouped.gradients[i].second.defined(), whole.gradients[i].second.defined());
      if (!whole.gradients[i].second.defined()) continue;
      // Some are zero except for rounding: a bias in front of a batch norm.
      const Tensor difference = grouped.gradients[i].second - whole.gradients[i].second;
      EXPECT_LE(difference.abs().max().item<double>(),
                5e-5 * whole.gradients[i].second.abs().max().item<double>() + 1e-6 * largest);
    }
  }
}

TEST(GroupsOfRows, TakeExamplesWithoutTokens) {
  const ModelInput batch = layout_batch(0, {120, 0, 0, 97});
  for (const LayoutCase& c : layout_cases(0)) {
    SCOPED_TRACE(testing::Message() << c.spec->name << " " << c.mixer << " " << c.config.pooling
                                    << " " << c.config.norm);
    const LayoutPass whole = pass_of(c, {.group_cost = {}}, batch);
    const LayoutPass grouped = pass_of(c, {.group_cost = 10}, batch);
    EXPECT_LT(grouped.positions, whole.positions) << "there are no groups";
    EXPECT_LE(ops::relative_error(grouped.logits, whole.logits), 1e-5);
    for (const auto& [name, grad] : grouped.gradients) {
      EXPECT_TRUE(!grad.defined() || grad.isfinite().all().item<bool>()) << name;
    }
  }
}

TEST(GroupsOfRows, DoNotReadPadding) {
  for (const LayoutCase& c : layout_cases(0.2)) {
    SCOPED_TRACE(testing::Message() << c.spec->name << " " << c.mixer << " " << c.config.pooling);
    const LayoutPass a = pass_of(c, {.group_cost = 10}, layout_batch(0)),
                     b = pass_of(c, {.group_cost = 10}, layout_batch(7));
    EXPECT_TRUE(at::equal(a.logits, b.logits));
  }
}

TEST(GroupsOfRows, HaveTheBitsOfTheirRecomputation) {
  const std::vector<LayoutCase> cases = layout_cases(0.2);
  for (const LayoutCase& c : {cases.front(), cases.back()}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << c.config.dropout_kind << " " << toString(type));
      Execution execution{.activations = type, .group_cost = 10};
      const LayoutPass kept = pass_of(c, execution, layout_batch());
      execution.recompute = true;
      const LayoutPass again = pass_of(c, execution, layout_batch());
      EXPECT_TRUE(at::equal(again.logits, kept.logits));
      for (size_t i = 0; i < kept.gradients.size(); ++i) {
        EXPECT_TRUE(at::equal(again.gradients[i].second, kept.gradients[i].second)) << i;
      }
    }
  }
}

TEST(GroupsOfRows, HaveTheBitsOfAnyNumberOfThreads) {
  const std::vector<LayoutCase> cases = layout_cases(0.2);
  for (const LayoutCase& c : {cases.front(), cases.back()}) {
    ops::expect_same_bits_at_any_number_of_threads([&] {
      const LayoutPass pass = pass_of(c, {.group_cost = 10}, layout_batch());
      std::vector<Tensor> all = {pass.logits};
      for (const auto& [name, gradient] : pass.gradients) all.push_back(gradient);
      return all;
    });
  }
}

TEST(StepRandom, GivesEveryGroupOfRowsAKeyOfItsOwn) {
  std::set<uint64_t> keys;
  for (const uint32_t part : {0u, 1u, 2u}) {
    const StepRandom random{.training = true, .seed = 1, .step = 2, .part = part};
    EXPECT_EQ(random.group_key(0, 1, 0), random.key(0, 1));
    for (uint32_t layer = 0; layer < 2; ++layer) {
      for (uint32_t group = 0; group < 8; ++group) keys.insert(random.group_key(layer, 1, group));
    }
  }
  EXPECT_EQ(keys.size(), size_t{3 * 2 * 8});
}

}  // namespace
}  // namespace lra::models

// The dense oracle of Local attention, and its strided groups, the option that the released code
// computes.
#include "io/toml.h"
#include "mixers/all.h"
#include "mixers/test_oracles.h"
#include "mixers/test_variants.h"

namespace lra::mixers {
namespace {

using at::Tensor;

Tensor local(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1), block = setting(in, "block");
  Tensor same_block = at::zeros({length, length}, at::kBool);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < length; ++j) same_block[i][j] = i / block == j / block;
  }
  return self_attention(in, same_block.logical_and(pairs_in_order(in)));
}

// Tokens listed group by group, each group filled up to the rows of the largest; -1 for a row that
// fills.
std::vector<int64_t> strided_order(int64_t length, int64_t num_groups) {
  const int64_t block = (length + num_groups - 1) / num_groups;
  std::vector<int64_t> order;
  for (int64_t group = 0; group < num_groups; ++group) {
    for (int64_t member = 0; member < block; ++member) {
      const int64_t token = member * num_groups + group;
      order.push_back(token < length ? token : -1);
    }
  }
  return order;
}

// Computed in the order of the groups, where the kernel takes its dropout decisions.
Tensor strided_oracle(const OracleInput& in) {
  const int64_t length = in.x_BLD.size(1);
  const int64_t num_groups = in.shape.max_length / setting(in, "block") + 1;
  const std::vector<int64_t> order = strided_order(length, num_groups);
  const auto rows = static_cast<int64_t>(order.size()), block = rows / num_groups;
  Tensor same_group = at::zeros({rows, rows}, at::kBool), take = at::zeros({rows}, at::kLong);
  Tensor filled = at::zeros({rows}, at::kBool), place = at::zeros({length}, at::kLong);
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < rows; ++b) same_group[a][b] = a / block == b / block;
    if (order[a] < 0) continue;
    filled[a] = true;
    take[a] = order[a];
    place[order[a]] = a;
  }
  OracleInput sorted = in;
  sorted.x_BLD = in.x_BLD.index_select(1, take);
  sorted.valid_BL = at::logical_and(in.valid_BL.index_select(1, take), filled);
  return self_attention(sorted, same_group.logical_and(pairs_in_order(sorted)))
      .index_select(1, place);
}

const ConformanceRow kLocalRow{"local", local, "block = 8", 8};

TEST(Local, AttendsWithinStridedGroups) {
  for (const char* settings :
       {"block = 8\ngroups = 'strided'", "block = 3\ngroups = 'strided'",
        "block = 50\ngroups = 'strided'", "block = 3\ngroups = 'strided'\ncausal = true"}) {
    expect_variant_agrees(kLocal, strided_oracle, settings);
  }
  expect_variant_agrees(kLocal, local, "block = 8\ncausal = true");
}

std::shared_ptr<SequenceLayer> strided_mixer(int64_t max_length) {
  return kLocal.make(
      layers::Initializer(1), parse_toml("block = 4\ngroups = 'strided'", "test settings"),
      {.model_dim = 4, .attention = {.heads = 1, .head_dim = 4}, .max_length = max_length});
}

TEST(Local, StridedGroupsDoNotDependOnPadding) {
  const auto mixer = strided_mixer(18);
  const Tensor x = ops::random_tensor({2, 11, 4}, 3).to(at::kFloat);
  const Tensor longer = at::constant_pad_nd(x, {0, 0, 0, 6}, 5);
  Tensor mask = at::zeros({2, 17}, at::kByte);
  mask.narrow(1, 0, 11).fill_(1);
  const Tensor alone = mixer->forward(x, {});
  EXPECT_TRUE(at::equal(alone, mixer->forward(longer, {.mask_BL = mask}).narrow(1, 0, 11)));
}

// This tells the option from the default: a token far away is seen, the neighbor is not.
TEST(Local, StridedGroupsSpanTheSequence) {
  const auto mixer = strided_mixer(12);
  const Tensor x = ops::random_tensor({1, 12, 4}, 3).to(at::kFloat);
  const Tensor before = mixer->forward(x, {});
  Tensor changed = x.clone();
  changed.select(1, 9).add_(1);
  const Tensor moved = (mixer->forward(changed, {}) - before).abs().sum({0, 2}) > 0;
  for (int64_t t = 0; t < 12; ++t) EXPECT_EQ(moved[t].item<bool>(), t % 4 == 1) << t;
}

}  // namespace
}  // namespace lra::mixers

#include "kernels/attention/visibility.h"

#include <gtest/gtest.h>

#include "kernels/attention/attention_test_settings.h"

namespace lra::kernels {
namespace {

TEST(Visibility, CountsThePairsThatTheRulesAllowWithoutTheMasks) {
  for (CaseSettings settings : all_cases()) {
    settings.key_mask = settings.query_mask = false;
    AttentionCase<float> c(settings);
    const AttentionProblem problem = c.problem();
    const AttentionShape& shape = problem.shape;
    int64_t expected = 0;
    for (int64_t b = 0; b < shape.batch; ++b) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        for (int64_t i = 0; i < shape.query_length; ++i) {
          for (int64_t j = 0; j < shape.key_length; ++j)
            expected += c.is_visible(b, h, i, j) ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(count_visible_pairs(problem), expected) << settings.describe();
  }
}

}  // namespace
}  // namespace lra::kernels

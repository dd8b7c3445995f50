#include "training/settings/run_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lra::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SelectionWarnings, AreOfWeightsChosenByTheTest) {
  RunRecord record;
  record.test = Evaluation{.step = 10, .accuracy = 0.8, .num_examples = 500};
  record.validation = "test";
  record.checkpoint = "best";
  EXPECT_THAT(selection_warnings(record), ElementsAre(HasSubstr("the test split chose")));
  record.checkpoint = "last";
  EXPECT_THAT(selection_warnings(record), IsEmpty());
  record.checkpoint = "best";
  record.validation = "own";
  EXPECT_THAT(selection_warnings(record), IsEmpty());
}

}  // namespace
}  // namespace lra::training

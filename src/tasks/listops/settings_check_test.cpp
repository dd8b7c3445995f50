#include "tasks/listops/settings_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "data/test_fixtures.h"

namespace lra::tasks {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr ListOpsSettings kReleased{};

// Doubts whether a training split of expressions drawn with `settings` is of the released ones.
std::vector<std::string> doubts_about(const ListOpsSettings& settings, uint32_t count = 40) {
  const TestFolder root;
  DatasetWriter writer(root.path("data"), imported_manifest("listops"), 0);
  writer.begin_split("train");
  std::vector<uint8_t> symbols;
  for (uint32_t i = 0; i < count; ++i) {
    draw_listops(settings, derive_key(1, RandomUse::kSample, i), symbols);
    writer.add(0, std::span<const uint8_t>(symbols));
  }
  writer.finish();
  return doubts_of_settings(Dataset::open(root.path("data")), kReleased);
}

TEST(ListOpsSettingsCheck, NamesWhatIsOther) {
  EXPECT_THAT(doubts_about(kReleased), ElementsAre());
  ListOpsSettings flat = kReleased, narrow = kReleased, short_ones = kReleased;
  flat.max_depth = 7;
  EXPECT_THAT(doubts_about(flat),
              ElementsAre(AllOf(StartsWith("expressions of train have "),
                                HasSubstr(" on average, those of the task's settings "))));
  narrow.max_args = 8;
  EXPECT_THAT(doubts_about(narrow), ElementsAre(StartsWith("expressions of train have ")));
  short_ones.min_length = 100;
  short_ones.max_length = 200;
  EXPECT_THAT(doubts_about(short_ones), ElementsAre(HasSubstr(" tokens on average")));
  EXPECT_THAT(doubts_about(short_ones, 19), ElementsAre()) << "too few to tell";
}

TEST(ListOpsSettingsCheck, HasNothingToSayWhereNothingCanBeDrawn) {
  const TestFolder root;
  Manifest manifest;
  manifest.task = "listops";
  manifest.source = "generated";
  manifest.source_hash = "none";
  DatasetWriter writer(root.path("data"), manifest, 0);
  writer.begin_split("train");
  writer.finish();
  ListOpsSettings impossible = kReleased;
  impossible.max_depth = 1;
  EXPECT_THAT(doubts_of_settings(Dataset::open(root.path("data")), impossible), ElementsAre());
}

}  // namespace
}  // namespace lra::tasks

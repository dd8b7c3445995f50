#include "report/tables/trade_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "records/test_records.h"
#include "report/report.h"
#include "report/tables/leaderboard.h"
#include "report/tables/speed.h"

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> front_of(std::vector<TradeOffPoint> points,
                                  bool TradeOffPoint::*on_front = &TradeOffPoint::on_speed_front) {
  mark_fronts(points);
  std::vector<std::string> front;
  for (const TradeOffPoint& point : points) {
    if (point.*on_front) front.push_back(point.title);
  }
  return front;
}

TEST(TradeOff, TheFrontIsWhatNoneBeatsInBoth) {
  EXPECT_THAT(front_of({{"good", 60, 1}, {"fast", 50, 5}, {"middle", 55, 3}, {"beaten", 54, 2}}),
              ElementsAre("good", "fast", "middle"));
}

TEST(TradeOff, EqualPointsStandOnTheFrontTogether) {
  EXPECT_THAT(front_of({{"a", 60, 1}, {"b", 60, 1}, {"slower", 60, 0.5}, {"worse", 59, 1}}),
              ElementsAre("a", "b"));
}

TEST(TradeOff, TheFrontOfMemoryIsOfThoseWhoseMemoryIsKnown) {
  EXPECT_THAT(
      front_of(
          {{"good", 60, 1, 4.0}, {"small", 50, 5, 1.0}, {"beaten", 50, 9, 2.0}, {"unknown", 99, 9}},
          &TradeOffPoint::on_memory_front),
      ElementsAre("good", "small"));
}

TEST(TradeOff, ThePapersRightPanelIsOfMemoryAndExamplesPerSecond) {
  const TradeOff paper = paper_trade_off();
  EXPECT_THAT(front_of(paper.points, &TradeOffPoint::on_memory_front),
              ElementsAre("Linformer", "Sinkhorn Transformer", "BigBird", "Performer"));
  EXPECT_EQ(paper.points.front().title, "Transformer");
  EXPECT_DOUBLE_EQ(*paper.points.front().examples_per_s, 1.4 * 32);
}

// The paper names two of them.
TEST(TradeOff, ThePapersTablesPutFourModelsOnTheirFront) {
  EXPECT_THAT(front_of(paper_trade_off().points),
              ElementsAre("Sinkhorn Transformer", "Synthesizer", "BigBird", "Performer"));
}

TradeOff our_trade_off_of(const std::vector<RunRecord>& records) {
  const Leaderboard board = build_leaderboard(records);
  const std::vector<SpeedGrid> grids = speed_grids(board.speeds);
  return our_trade_off({records, board, {}, grids, {}});
}

// Three models share one task, the Transformer has another one besides.
TEST(TradeOff, OneTaskStandsForAnAverageThatNobodyHas) {
  std::vector<RunRecord> records = {finished_run("listops", "transformer", 36)};
  for (const auto& [model, percent, speed] :
       {std::tuple("transformer", 42, 1), {"performer", 40, 3}, {"local", 38, 2}}) {
    records.push_back(finished_run("image", model, percent));
    records.push_back(measured(model, 1024, speed));
  }
  const TradeOff ours = our_trade_off_of(records);
  EXPECT_EQ(ours.quality_name, "accuracy on Image, %");
  EXPECT_THAT(ours.caption, HasSubstr("only one task"));
  ASSERT_EQ(ours.points.size(), 3u);
  EXPECT_THAT(front_of(ours.points), ElementsAre("transformer", "performer"));
  // A shortened run is not set beside full ones.
  records.push_back(finished_run("image", "linformer", 20));
  records.back().steps = records.back().planned_steps = 300;
  records.push_back(measured("linformer", 1024, 9));
  EXPECT_EQ(our_trade_off_of(records).points.size(), 3u);
  // An average that two models have is shown.
  records.push_back(finished_run("listops", "performer", 37));
  EXPECT_EQ(our_trade_off_of(records).quality_name, "average of the tasks shown, %");
}

TEST(TradeOff, OursNeedsAccuraciesAndMeasurements) {
  EXPECT_TRUE(our_trade_off_of({}).points.empty());
  EXPECT_TRUE(our_trade_off_of({measured("transformer", 1024, 1), measured("local", 1024, 2)})
                  .points.empty());
  EXPECT_TRUE(our_trade_off_of({finished_run("image", "transformer", 42)}).points.empty());
}

}  // namespace
}  // namespace lra::report

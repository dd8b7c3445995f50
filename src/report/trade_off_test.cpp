#include "report/trade_off.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lra::report {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> front_of(std::vector<TradeOffPoint> points) {
  mark_front(points);
  std::vector<std::string> front;
  for (const TradeOffPoint& point : points) {
    if (point.on_front) front.push_back(point.title);
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

// The paper names two of them.
TEST(TradeOff, ThePapersTablesPutFourModelsOnTheirFront) {
  EXPECT_THAT(front_of(paper_trade_off().points),
              ElementsAre("Sinkhorn Transformer", "Synthesizer", "BigBird", "Performer"));
}

}  // namespace
}  // namespace lra::report

#include "report/formats/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace lra::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Makes a curve of steps and percents.
Curve curve(const std::string& name, const std::vector<std::pair<int64_t, double>>& points) {
  Curve made{name, {}};
  for (const auto& [step, percent] : points) {
    made.points.push_back({.step = step, .accuracy = percent / 100});
  }
  return made;
}

TEST(Chart, TicksAreRoundAndCoverTheRange) {
  EXPECT_THAT(axis_ticks(0, 5000), ElementsAre(0, 1000, 2000, 3000, 4000, 5000));
  EXPECT_THAT(axis_ticks(47, 71), ElementsAre(45, 50, 55, 60, 65, 70, 75));
  for (const double high : {0.7, 1.0, 3.0, 9.9, 123.0, 1e6}) {
    const auto ticks = axis_ticks(0, high);
    EXPECT_GE(ticks.size(), 3u);
    EXPECT_LE(ticks.size(), 7u);
    EXPECT_GE(ticks.back(), high);
  }
}

TEST(Chart, LinesAreDrawnInTheirOwnUnits) {
  const std::string svg =
      line_chart("what", {curve("a", {{100, 50}, {200, 61.25}}), curve("b", {{1, 2}})});
  EXPECT_THAT(svg, HasSubstr("d=\"M100 -50.00L200 -61.25\"><title>a</title>"));
  EXPECT_THAT(svg, HasSubstr("dot\" d=\"M1 -2.00h0\"")) << "a path of one point draws nothing";
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 -80.0 200.0 80.0\""));
  EXPECT_THAT(svg, HasSubstr("aria-label=\"what\""));
}

TEST(Chart, TextsAreEscaped) {
  const std::string bad = "<b>\"&";
  const std::string svg = line_chart(bad, {curve(bad, {{1, 2}})}) +
                          circle_chart(bad, bad, bad, {{bad, bad, {1, 2}}}) +
                          bar_chart(bad, bad, {bad}, {{bad, {3}}}) + chart_figure(bad, bad, {}, {});
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(Chart, CirclesOfOnePlaceAndNoAreaAreDrawn) {
  const std::string svg = circle_chart("", "x", "y", {{"a", "", {1, 2}}, {"b", "", {1, 2}}});
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr("r=\"3.0\""));
}

TEST(Chart, TicksOfEqualValuesAreApart) {
  const std::string svg = circle_chart("", "x", "y", {{"a", "", {5e6, 70}}, {"b", "", {5e6, 70}}});
  EXPECT_THAT(svg, HasSubstr(">5.00M<"));
  EXPECT_THAT(svg, HasSubstr(">5.04M<"));
  EXPECT_THAT(svg, Not(HasSubstr("4999")));
  const std::string thousands = line_chart("", {curve("a", {{2500, 1}, {12500, 2}})});
  EXPECT_THAT(thousands, HasSubstr(">5K<"));
  EXPECT_THAT(thousands, HasSubstr(">0<"));
}

TEST(Chart, NoCircleIsCutOff) {
  const std::string svg = circle_chart("", "x", "y", {{"a", "", {1, 1}, 5}, {"b", "", {2, 2}, 5}});
  for (size_t at = svg.find("cx=\""); at != svg.npos; at = svg.find("cx=\"", at + 1)) {
    const double x = std::stod(svg.substr(at + 4));
    EXPECT_GE(x, 62 + 21);
    EXPECT_LE(x, 540 - 21);
  }
}

TEST(Chart, NamesStandApart) {
  const std::string svg =
      circle_chart("", "x", "y", {{"first", "", {1, 2}}, {"second", "", {1, 2}}});
  const auto place_of = [&](const std::string& name) {
    const size_t end = svg.find(">" + name + "<");
    return svg.substr(svg.rfind("<text", end), end - svg.rfind("<text", end));
  };
  EXPECT_NE(place_of("first"), place_of("second"));
}

TEST(Chart, MarkedCirclesAreJoinedFromLeftToRight) {
  const std::string svg = circle_chart(
      "", "x", "y", {{"a", "", {2, 1}, 0, true}, {"b", "", {1, 2}, 0, true}, {"c", "", {1.5, 1}}});
  const size_t at = svg.find("points=\"");
  const std::string points = svg.substr(at + 8, svg.find('"', at + 8) - at - 8);
  EXPECT_LT(std::stod(points), std::stod(points.substr(points.find(' '))));
  EXPECT_EQ(std::count(points.begin(), points.end(), ','), 2);
}

TEST(Chart, NamesThatDoNotFitUnderTheirBarsAreSlanted) {
  EXPECT_THAT(bar_chart("", "y", {"one", "two"}, std::vector<ChartBars>(3, {"name", {1, 2}})),
              Not(HasSubstr("rotate(-35")));
  EXPECT_THAT(bar_chart("", "y", {"one", "two"}, std::vector<ChartBars>(20, {"name", {1, 2}})),
              HasSubstr("rotate(-35"));
}

}  // namespace
}  // namespace lra::report

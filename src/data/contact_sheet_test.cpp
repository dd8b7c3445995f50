#include "data/contact_sheet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/test_fixtures.h"

namespace lra {
namespace {

using ::testing::HasSubstr;

constexpr TaskShape kShape{
    .length = 9, .vocabulary = 256, .num_classes = 2, .num_towers = 1, .has_padding = false};

// Five images of 3 x 3, each of one gray.
Split five_images(const TestFolder& root) {
  DatasetWriter writer(root.path("data"), imported_manifest("image"), 0);
  writer.begin_split("train");
  for (uint8_t i = 0; i < 5; ++i) {
    writer.add(0, std::vector<uint8_t>(9, static_cast<uint8_t>(200 + i)));
  }
  writer.finish();
  return Dataset::open(root.path("data")).split("train");
}

TEST(ContactSheet, TilesStandRowByRowWithLinesBetween) {
  const TestFolder root;
  const GrayImage sheet = contact_sheet(kShape, five_images(root), 0, 100);
  EXPECT_EQ(sheet.width, 3 * 5 + 2);
  EXPECT_EQ(sheet.height, 2 * 5 + 2);
  const auto at = [&](int y, int x) {
    return sheet.pixels[static_cast<size_t>(y * sheet.width + x)];
  };
  EXPECT_EQ(at(2, 2), 200);
  EXPECT_EQ(at(4, 4), 200);
  EXPECT_EQ(at(5, 4), 96);
  EXPECT_EQ(at(2, 7), 201);
  EXPECT_EQ(at(2, 12), 202);
  EXPECT_EQ(at(7, 2), 203);
  EXPECT_EQ(at(7, 7), 204);
  EXPECT_EQ(at(7, 12), 96);
}

TEST(ContactSheet, RefusesWhatIsNoImageAndWhatIsNotThere) {
  const TestFolder root;
  const Split split = five_images(root);
  const auto error_for = [&](TaskShape shape, int64_t first, int64_t count) {
    return error_of([&] { contact_sheet(shape, split, first, count); });
  };
  EXPECT_EQ(error_for(kShape, 4, 1), "");
  EXPECT_THAT(error_for(kShape, 5, 1), HasSubstr("no example 5"));
  EXPECT_THAT(error_for(kShape, -1, 1), HasSubstr("no example -1"));
  TaskShape shape = kShape;
  shape.length = 10;
  EXPECT_THAT(error_for(shape, 0, 1), HasSubstr("not images"));
  shape.length = 16;
  EXPECT_THAT(error_for(shape, 0, 1), HasSubstr("has 9 pixels"));
  shape = kShape;
  shape.has_padding = true;
  EXPECT_THAT(error_for(shape, 0, 1), HasSubstr("not images"));
}

}  // namespace
}  // namespace lra

#include "tasks/image/layout_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "io/toml.h"
#include "tasks/data_doubts.h"
#include "tasks/image/image.h"
#include "tasks/image/test_cifar.h"
#include "tasks/prepare_data.h"

namespace lra::tasks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Picture = std::array<uint8_t, kCifarPixels>;

// A smooth surface that is brighter at the top.
Picture photo(RandomStream& random) {
  const uint32_t level = 130 + random.below(20), slope = 1 + random.below(2);
  const uint32_t bump_y = random.below(32), bump_x = random.below(32);
  Picture picture;
  for (uint32_t y = 0; y < 32; ++y) {
    for (uint32_t x = 0; x < 32; ++x) {
      const uint32_t far =
          (y > bump_y ? y - bump_y : bump_y - y) + (x > bump_x ? x - bump_x : bump_x - x);
      picture[y * 32 + x] =
          static_cast<uint8_t>(level + slope * (31 - y) - 2 * far + random.below(8));
    }
  }
  return picture;
}

std::vector<std::string> doubts_after(const std::function<void(Picture&)>& change,
                                      int count = 1000) {
  const TestFolder root;
  DatasetWriter writer(root.path("data"), imported_manifest("image"), 0);
  RandomStream random(11);
  writer.begin_split("train");
  for (int i = 0; i < count; ++i) {
    Picture picture = photo(random);
    change(picture);
    writer.add(i % 10, std::span<const uint8_t>(picture));
  }
  writer.finish();
  return doubts_of_layout(Dataset::open(root.path("data")));
}

void rearrange(Picture& picture, const std::function<size_t(size_t)>& source_of) {
  const Picture before = picture;
  for (size_t p = 0; p < picture.size(); ++p) picture[p] = before[source_of(p)];
}

TEST(LayoutChecks, TellPhotographsFromOtherOrdersOfTheirPixels) {
  EXPECT_THAT(doubts_after([](Picture&) {}), ElementsAre());
  std::array<size_t, kCifarPixels> order;
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(5);
  for (size_t p = order.size() - 1; p > 0; --p) {
    std::swap(order[p], order[random.below(static_cast<uint32_t>(p + 1))]);
  }
  const auto other_order = ElementsAre(HasSubstr("are pixels or colors in another order?"));
  EXPECT_THAT(doubts_after([&](Picture& p) { rearrange(p, [&](size_t i) { return order[i]; }); }),
              other_order);
  // Rows of 32 values hold 10 2/3 pixels of three colors each.
  EXPECT_THAT(doubts_after([](Picture& p) { rearrange(p, [](size_t i) { return i / 3; }); }),
              other_order);
  const auto other_direction = ElementsAre(HasSubstr("transposed, inverted or upside down?"));
  EXPECT_THAT(
      doubts_after([](Picture& p) { rearrange(p, [](size_t i) { return i % 32 * 32 + i / 32; }); }),
      other_direction);
  EXPECT_THAT(doubts_after([](Picture& p) { std::ranges::reverse(p); }), other_direction);
  const auto invert = [](Picture& p) {
    for (uint8_t& pixel : p) pixel = static_cast<uint8_t>(255 - pixel);
  };
  EXPECT_THAT(doubts_after(invert), other_direction);
  EXPECT_THAT(doubts_after(invert, 999), ElementsAre()) << "too few to tell";
}

// 4,000 of the official images for training, and 800 for the test.
TEST(LayoutChecks, LeaveRealImagesAlone) {
  const char* data = std::getenv("LRA_TEST_DATA");
  if (!data) GTEST_SKIP() << "LRA_TEST_DATA is not set";
  const TestFolder root;
  write_small_cifar(root.path("."), real_cifar(std::string(data) + "/cifar-10-lossless"));
  QuietProgress progress;
  const auto task = kImageTask.make(parse_toml("", "test"));
  import_data(*task, {root.path(".")}, root.path("data"), progress);
  EXPECT_THAT(doubts_of_contents(*task, Dataset::open(root.path("data"))), ElementsAre());
}

}  // namespace
}  // namespace lra::tasks

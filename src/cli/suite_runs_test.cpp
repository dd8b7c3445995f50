#include <gtest/gtest.h>

#include "cli/suite.h"

namespace lra::cli {
namespace {

TEST(Places, SpreadRunsOverDevices) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(places_of({"cpu"}), Names({"cpu"}));
  EXPECT_EQ(places_of({"cuda:0", "cuda:1"}), Names({"cuda:0", "cuda:1"}));
  EXPECT_EQ(places_of({"cuda:0", "cuda:1"}, 3), Names({"cuda:0", "cuda:1", "cuda:0"}));
  EXPECT_EQ(places_of({"cuda:0", "cuda:1"}, 1), Names({"cuda:0"}));
}

}  // namespace
}  // namespace lra::cli

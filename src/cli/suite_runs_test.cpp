#include "cli/suite_runs.h"

#include <gtest/gtest.h>

namespace lra::cli {
namespace {

std::vector<std::string> devices_of(const Places& places) {
  std::vector<std::string> devices;
  for (size_t n = 0; n < places.size(); ++n) devices.push_back(places.device(n));
  return devices;
}

TEST(Places, SpreadRunsOverDevices) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(devices_of(Places({"cpu"})), Names({"cpu"}));
  EXPECT_EQ(devices_of(Places({"cuda:0", "cuda:1"})), Names({"cuda:0", "cuda:1"}));
  EXPECT_EQ(devices_of(Places({"cuda:0", "cuda:1"}, 3)), Names({"cuda:0", "cuda:1", "cuda:0"}));
  EXPECT_EQ(devices_of(Places({"cuda:0", "cuda:1"}, 1)), Names({"cuda:0"}));
}

}  // namespace
}  // namespace lra::cli

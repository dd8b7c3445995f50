// Every model on a device: the same bits as on the CPU, forward and backward.
#include <gtest/gtest.h>

#include "io/toml.h"
#include "model_results.h"
#include "stand_in.h"

namespace lra {
namespace {

class EveryModelOnADevice : public testing::TestWithParam<const mixers::LayerSpec*> {};

TEST_P(EveryModelOnADevice, HasTheBitsOfTheCpu) {
  const mixers::LayerSpec& mixer = *GetParam();
  for (const char* toml : mixer_settings(mixer)) {
    for (const Setting& setting : model_settings()) {
      SCOPED_TRACE(std::string(toml) + "; " + setting.name);
      const ConfigTable config = parse_toml(toml, "settings");
      const auto expected = results(setting, mixer, config, at::kCPU);
      const auto actual = results(setting, mixer, config, stand_in());
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(actual[i].first, expected[i].first);
        EXPECT_TRUE(at::equal(actual[i].second, expected[i].second)) << expected[i].first;
        EXPECT_TRUE(expected[i].second.isfinite().all().item<bool>()) << expected[i].first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryModelOnADevice, testing::ValuesIn(mixers::kAllMixers),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace lra

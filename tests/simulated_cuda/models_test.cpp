// Every model on a GPU, or with its operators and simulated kernels: near the CPU's results.
#include <gtest/gtest.h>

#include "io/toml.h"
#include "model_results.h"
#include "tested_device.h"

namespace lra {
namespace {

class EveryModelOnAGpu : public testing::TestWithParam<const mixers::LayerSpec*> {};

// Largest difference relative to the largest value; gradients that are 0 but for rounding count as
// 0.01.
double difference(const at::Tensor& a, const at::Tensor& b) {
  const double size = std::max(0.01, b.abs().max().item<double>());
  return (a - b).abs().max().item<double>() / size;
}

// Normwise difference, for results in bfloat16.
double normwise_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / std::max(0.01, b.norm().item<double>());
}

// Where kernels are simulated, the ways of computing that differ in their kernels: float32 with
// CLS, and bfloat16.
std::vector<Setting> tested_settings() {
  const std::vector<Setting>& all = model_settings();
  return is_simulated() ? std::vector<Setting>{all[0], all[2]} : all;
}

TEST_P(EveryModelOnAGpu, IsNearTheCpu) {
  LRA_SKIP_WITHOUT_DEVICE();
  const mixers::LayerSpec& mixer = *GetParam();
  for (const char* toml : mixer_settings(mixer)) {
    for (const Setting& setting : tested_settings()) {
      SCOPED_TRACE(std::string(toml) + "; " + setting.name);
      const bool is_bf16 = setting.execution.activations == at::kBFloat16;
      const double bound = is_bf16 ? 0.1 : 1e-4;
      // Rounding switches some ReLUs on or off, the head's among them, and with one of those up to
      // half of a gradient.
      const double gradient_bound = is_bf16 ? 0.5 : bound;
      const ConfigTable config = parse_toml(toml, "settings");
      const auto expected = results(setting, mixer, config, at::kCPU);
      const auto actual = results(setting, mixer, config, *tested_device());
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto distance = is_bf16 ? normwise_difference : difference;
        const bool is_gradient = expected[i].first != "logits" && expected[i].first != "loss";
        EXPECT_LE(distance(actual[i].second, expected[i].second),
                  is_gradient ? gradient_bound : bound)
            << expected[i].first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryModelOnAGpu, testing::ValuesIn(mixers::kAllMixers),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace lra

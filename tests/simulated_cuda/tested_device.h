// The device that the tests of GPU operators run on: a GPU, or one that is simulated.
#pragma once

#include <ATen/ATen.h>

namespace lra {

// Nothing where there is none.
std::optional<at::Device> tested_device();

// True if each kernel takes a thousand times as long as on a GPU.
bool is_simulated();

}  // namespace lra

#define LRA_SKIP_WITHOUT_DEVICE() \
  if (!tested_device()) GTEST_SKIP() << "there is no GPU here"

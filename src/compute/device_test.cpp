#include "cli/device.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/compute.h"

namespace lra::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    (void)find_device(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUserError);
    return error.what();
  }
  return "";
}

TEST(Device, IsTheCpuUnlessAnotherIsNamed) {
  EXPECT_EQ(find_device("cpu"), "cpu");
  EXPECT_EQ(device_title("cpu"), "cpu");
}

TEST(Device, HasANameThatIsKnown) {
  for (const char* text : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:0 "}) {
    EXPECT_THAT(refusal(text), HasSubstr("cpu, cuda or cuda:N")) << text;
  }
}

TEST(Device, IsThere) {
  if (at::hasCUDA()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(refusal("cuda"), AllOf(HasSubstr("no GPU"), HasSubstr("leave out --device")));
  EXPECT_THAT(refusal("cuda:1"), HasSubstr("--device cuda:1"));
  EXPECT_EQ(gpus_found(), "none");
}

}  // namespace
}  // namespace lra::cli

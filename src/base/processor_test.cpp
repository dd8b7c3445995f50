#include "base/processor.h"

#include <gtest/gtest.h>

namespace lra {
namespace {

TEST(Processor, IsNamedAsTheKernelNamesIt) {
  EXPECT_EQ(
      processor_name("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9965\n\nflags : fpu"),
      "AMD EPYC 9965");
}

TEST(Processor, IsNamedByItsNumbersOnAarch64) {
  EXPECT_EQ(processor_name("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"),
            "Arm Neoverse-V2");
  EXPECT_EQ(processor_name("CPU implementer\t: 0x41\nCPU part\t: 0xd01\n"), "Arm part 0xd01");
  EXPECT_EQ(processor_name("CPU implementer\t: 0xc0\nCPU part\t: 0xac3"),
            "implementer 0xc0, part 0xac3");
}

TEST(Processor, IsUnknownWithoutANameAndNumbers) {
  EXPECT_EQ(processor_name("processor\t: 0\nmodel name\t:\nflags : fpu"), "unknown");
  EXPECT_EQ(processor_name(""), "unknown");
}

}  // namespace
}  // namespace lra

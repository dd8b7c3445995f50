#include "base/resources.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace lra {
namespace {

constexpr int64_t kBlock = 64 << 20;

// Touches every page of a block and gives it back. Not from the heap: an allocator may keep it.
void use_and_free_a_block() {
  void* block = ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  auto* pages = static_cast<volatile char*>(block);
  for (int64_t i = 0; i < kBlock; i += 4096) pages[i] = 1;
  ::munmap(block, kBlock);
}

TEST(Resources, PeakRemembersMemoryThatWasGivenBack) {
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  use_and_free_a_block();
  EXPECT_GE(peak_resident_bytes(), before + kBlock * 9 / 10);
  EXPECT_LT(resident_bytes(), before + kBlock / 2);
}

TEST(Resources, ResetForgetsThePeak) {
  use_and_free_a_block();
  if (!reset_peak_resident_bytes()) GTEST_SKIP() << "the kernel does not allow it";
  EXPECT_LT(peak_resident_bytes(), resident_bytes() + kBlock / 2);
}

TEST(Resources, MachineHasMoreThanThisProcessUses) {
  EXPECT_GT(total_memory_bytes(), resident_bytes());
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), total_memory_bytes());
}

TEST(BusyProcessors, CountOneThatSpins) {
  std::atomic<bool> stop = false;
  std::thread spinning([&] {
    while (!stop) continue;
  });
  const double busy = busy_processors(0.3);
  stop = true;
  spinning.join();
  EXPECT_GT(busy, 0.5);
}

TEST(OtherPrograms, DisturbOneThatTakesEveryProcessor) {
  const OtherPrograms others;
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) continue;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const bool disturbed = others.disturb(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(disturbed);
  EXPECT_FALSE(others.disturb(0)) << "nothing of this program is disturbed";
}

}  // namespace
}  // namespace lra

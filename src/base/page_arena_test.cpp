#include "base/page_arena.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace lra {
namespace {

constexpr size_t kPage = 4096, kMegabyte = 1 << 20;

char* block(PageArena& arena, size_t bytes) { return static_cast<char*>(arena.allocate(bytes)); }

TEST(PageArena, TakesTheSmallestPartThatFits) {
  PageArena arena(kMegabyte);
  char* large = block(arena, 40 * kPage);
  char* wall = block(arena, kPage);
  char* small = block(arena, 10 * kPage);
  char* end = block(arena, 1);
  EXPECT_EQ(wall, large + 40 * kPage);
  EXPECT_EQ(end, small + 10 * kPage);
  EXPECT_TRUE(arena.free(large));
  EXPECT_TRUE(arena.free(small));
  EXPECT_EQ(block(arena, 9 * kPage + 1), small);
  EXPECT_EQ(block(arena, 11 * kPage), large);
  EXPECT_EQ(block(arena, 30 * kPage), large + 52 * kPage);
}

TEST(PageArena, JoinsFreeNeighbours) {
  PageArena arena(kMegabyte);
  std::vector<char*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(block(arena, 8 * kPage));
  block(arena, kPage);
  for (const int i : {0, 2, 1, 3}) EXPECT_TRUE(arena.free(blocks[i]));
  EXPECT_EQ(block(arena, 32 * kPage), blocks[0]);
}

TEST(PageArena, RefusesWhatDoesNotFit) {
  PageArena arena(16 * kPage);
  EXPECT_EQ(arena.capacity(), 16 * kPage);
  EXPECT_EQ(arena.allocate(17 * kPage), nullptr);
  EXPECT_EQ(arena.allocate(SIZE_MAX), nullptr);
  char* all = block(arena, 16 * kPage);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(arena.allocate(1), nullptr);
  EXPECT_TRUE(arena.free(all));
  EXPECT_EQ(block(arena, 1), all);
  int other = 0;
  EXPECT_FALSE(arena.free(&other));
  EXPECT_FALSE(arena.free(nullptr));
}

TEST(PageArena, FreeingTwiceEndsTheProgram) {
  PageArena arena(kMegabyte);
  char* one = block(arena, 2 * kPage);
  EXPECT_DEATH(arena.free(one + kPage), "");
  EXPECT_TRUE(arena.free(one));
  EXPECT_DEATH(arena.free(one), "");
}

TEST(PageArena, GivesPagesBackAndKeepsThoseInUse) {
  PageArena arena(kMegabyte);
  char *first = block(arena, 4 * kPage), *second = block(arena, 4 * kPage);
  std::memset(first, 1, 4 * kPage);
  std::memset(second, 2, 4 * kPage);
  EXPECT_TRUE(arena.free(first));
  arena.give_back();
  EXPECT_EQ(block(arena, 4 * kPage)[100], 0);
  EXPECT_EQ(second[4 * kPage - 1], 2);
}

TEST(PageArena, TakesHalfOfTheAddressesThatAreLeft) {
  constexpr int kNoLimit = 2;  // emulators of another processor take it and do nothing
  const auto arena_under_a_limit = [] {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * kPage + (size_t{4} << 30);
    rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(1);
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != bytes) std::_Exit(kNoLimit);
    PageArena arena(size_t{1} << 40);
    const bool good = arena.capacity() > (size_t{1} << 30) &&
                      arena.capacity() <= (size_t{1} << 31) && arena.allocate(kMegabyte);
    std::_Exit(good ? 0 : 1);
  };
  const auto good_or_no_limit = [](int status) {
    return testing::ExitedWithCode(0)(status) || testing::ExitedWithCode(kNoLimit)(status);
  };
  EXPECT_EXIT(arena_under_a_limit(), good_or_no_limit, "");
}

// Blocks of random sizes by several threads: what one wrote is there until it frees it.
TEST(PageArena, BlocksOfThreadsDoNotOverlap) {
  PageArena arena(64 * kMegabyte);
  const auto work = [&](unsigned char mark) {
    std::mt19937 random(mark);
    std::vector<std::pair<char*, size_t>> mine;
    for (int i = 0; i < 2000; ++i) {
      if (mine.size() < 8) {
        const size_t bytes = random() % (40 * kPage) + 1;
        char* made = block(arena, bytes);
        ASSERT_NE(made, nullptr);
        std::memset(made, mark, bytes);
        mine.emplace_back(made, bytes);
        continue;
      }
      std::swap(mine[random() % mine.size()], mine.back());
      const auto [old, bytes] = mine.back();
      mine.pop_back();
      for (size_t at = 0; at < bytes; at += 61) ASSERT_EQ(old[at], static_cast<char>(mark));
      ASSERT_TRUE(arena.free(old));
    }
    for (const auto& [old, bytes] : mine) ASSERT_TRUE(arena.free(old));
  };
  std::vector<std::thread> threads;
  for (unsigned char mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(arena.allocate(64 * kMegabyte), nullptr);  // one free part again
}

}  // namespace
}  // namespace lra

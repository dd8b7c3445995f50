#include "io/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/scratch_folder.h"
#include "base/text_format.h"
#include "io/atomic_file.h"

namespace lra {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

using testing::StartsWith;

const std::vector<std::string> kUnicode = ProgressTarget::unicode_fill();
const std::vector<std::string> kAscii = ProgressTarget::ascii_fill();

ProgressState state(int64_t count, int64_t total, double elapsed_s) {
  return {.description = "",
          .unit = "it",
          .postfix = "",
          .count = count,
          .total = total,
          .elapsed_s = elapsed_s};
}

// The expected lines are what tqdm 4.67 prints for the same state (tqdm.format_meter).
TEST(ProgressLine, LooksLikeTqdm) {
  ProgressState train = state(450, 1000, 12.4);
  train.description = "train";
  train.postfix = "loss=0.69, acc=0.55";
  train.rate = 36.21;
  EXPECT_EQ(progress_line(train, 90, kUnicode),
            "train:  45%|█████████▉            | 450/1000 [00:12<00:15, 36.21it/s, "
            "loss=0.69, acc=0.55]");
  EXPECT_EQ(progress_line(train, 0, kUnicode),
            "train:  45%|████▌     | 450/1000 [00:12<00:15, 36.21it/s, loss=0.69, acc=0.55]");
}

TEST(ProgressLine, StartsWithoutARate) {
  EXPECT_EQ(progress_line(state(0, 1000, 0), 60, kUnicode),
            "  0%|                              | 0/1000 [00:00<?, ?it/s]");
}

TEST(ProgressLine, TurnsSlowRatesAround) {
  ProgressState slow = state(1000, 1000, 4000);
  slow.description = "x";
  EXPECT_EQ(progress_line(slow, 60, kUnicode),
            "x: 100%|██████████████| 1000/1000 [1:06:40<00:00,  4.00s/it]");
  slow = state(3, 10, 12);
  slow.unit = "ep";
  EXPECT_EQ(progress_line(slow, 60, kUnicode),
            " 30%|███████▏                | 3/10 [00:12<00:28,  4.00s/ep]");
}

TEST(ProgressLine, HasAnAsciiLook) {
  EXPECT_EQ(progress_line(state(333, 1000, 10), 60, kAscii),
            " 33%|######6             | 333/1000 [00:10<00:20, 33.30it/s]");
}

TEST(ProgressLine, ScalesUnits) {
  ProgressState tokens = state(12345, 50'000'000, 2);
  tokens.unit = "tok";
  tokens.unit_scale = true;
  EXPECT_EQ(progress_line(tokens, 70, kUnicode),
            "  0%|                        | 12.3k/50.0M [00:02<2:14:58, 6.17ktok/s]");
  tokens.description = "read";
  tokens.unit = "B";
  tokens.count = 123456;
  tokens.total = 0;
  EXPECT_EQ(progress_line(tokens, 70, kUnicode), "read: 123kB [00:02, 61.7kB/s]");
}

TEST(ProgressLine, LeavesOutTheLastItemsThatDoNotFit) {
  ProgressState training = state(38, 6256, 10);
  training.description = "text s4d";
  training.unit = "step";
  training.postfix = "loss=0.694, acc=0.484, val=0.512, 148,767 tok/s, 129 ex/s, 791.5 MB";
  const std::string line = progress_line(training, 80, kAscii);
  EXPECT_EQ(display_width(line), 80) << line;
  EXPECT_THAT(line, EndsWith("step/s, loss=0.694, acc=0.484]"));
  EXPECT_THAT(progress_line(training, 120, kAscii), EndsWith(", 148,767 tok/s, 129 ex/s]"));
  EXPECT_THAT(progress_line(training, 0, kAscii), EndsWith("129 ex/s, 791.5 MB]"));
  training.total = 0;
  EXPECT_THAT(progress_line(training, 50, kAscii), EndsWith("step/s, loss=0.694]"));
}

TEST(ProgressLine, DrawsNoBarPastTheTotal) {
  EXPECT_EQ(progress_line(state(1001, 1000, 2), 70, kUnicode), "1001it [00:02, 500.50it/s]");
}

TEST(ProgressLine, IsCutToTheTerminal) {
  const std::string name(100, 'p');
  ProgressState wide = state(5, 1000, 1);
  wide.description = name;
  EXPECT_EQ(progress_line(wide, 70, kUnicode), std::string(70, 'p'));
}

// A bar that draws into a file.
class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND, 0600)) {}
  ~ProgressTest() override { ::close(fd_); }

  ProgressTarget target(bool terminal) const {
    return {.fd = fd_,
            .terminal = terminal,
            .disabled = false,
            .columns = 60,
            .min_interval_s = 0.02,
            .fill = ProgressTarget::ascii_fill()};
  }
  std::string written() const { return read_file(path_, 1 << 20); }

  ScratchFolder folder_;
  std::string path_ = folder_.file("out");
  int fd_;
};

TEST_F(ProgressTest, RedrawsOneLineOnATerminalAndEndsIt) {
  Progress bar({.description = "a", .total = 4}, target(true));
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    bar.update();
  }
  bar.set_postfix("loss=1");
  bar.finish();
  const std::string text = written();
  EXPECT_THAT(text, StartsWith("\ra:   0%|"));
  EXPECT_THAT(text, HasSubstr("\ra:  50%|"));
  EXPECT_THAT(text, HasSubstr("| 4/4 [00:00<00:00, "));
  EXPECT_THAT(text, EndsWith("it/s, loss=1]\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(ProgressTest, IsThrottled) {
  Progress bar({.total = 1000000}, target(true));
  for (int i = 0; i < 1000000; ++i) bar.update();
  bar.finish();
  const std::string text = written();
  EXPECT_THAT(text, HasSubstr("1000000/1000000"));
  // The loop takes some 10 ms; a redraw per update would be a million.
  EXPECT_LT(std::count(text.begin(), text.end(), '\r'), 100);
}

TEST_F(ProgressTest, PrintsMessagesAboveTheBar) {
  Progress bar({.total = 10}, target(true));
  bar.message("step 1 is done");
  bar.finish();
  const std::string blank = "\r" + std::string(60, ' ') + "\r";
  EXPECT_THAT(written(), HasSubstr(blank + "step 1 is done\n\r  0%|"));
}

TEST_F(ProgressTest, BlanksWhatALongerLineLeaves) {
  ProgressTarget wide = target(true);
  {
    Progress bar({.total = 0}, wide);
    bar.set_postfix("a long postfix");
    bar.message("x");
    bar.set_postfix("");
    bar.finish();
  }
  EXPECT_THAT(written(), EndsWith("it/s]                \n"));
}

TEST_F(ProgressTest, IsOneLineAtTheEndWithoutATerminal) {
  Progress bar({.description = "a", .total = 4}, target(false));
  bar.update(4);
  bar.message("note");
  bar.finish();
  bar.finish();
  EXPECT_THAT(written(), StartsWith("note\na: 100%|##########| 4/4 [00:00<"));
  EXPECT_EQ(written().find('\r'), std::string::npos);
  EXPECT_THAT(written(), EndsWith("]\n"));
}

TEST_F(ProgressTest, CountsWhatWasDoneBeforeButNotItsSpeed) {
  ProgressState resumed = state(60, 100, 5);
  resumed.initial = 50;
  const std::string line = progress_line(resumed, 0, kAscii);
  EXPECT_THAT(line, HasSubstr("60/100 [00:05<00:20,  2.00it/s]"));
  Progress bar({.total = 100, .initial = 60}, target(false));
  bar.update(40);
  bar.finish();
  EXPECT_THAT(written(), HasSubstr("100/100"));
}

TEST_F(ProgressTest, IsSilentWhenQuiet) {
  Progress bar({.total = 4, .quiet = true}, target(true));
  bar.update(4);
  bar.message("note");
  bar.finish();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, PrintsOnlyMessagesWhenDisabled) {
  ProgressTarget disabled = target(true);
  disabled.disabled = true;
  Progress bar({.total = 4}, disabled);
  bar.update(4);
  bar.message("note");
  bar.finish();
  EXPECT_EQ(written(), "note\n");
}

TEST_F(ProgressTest, EndsItsLineWhenTheWorkIsCutShort) {
  { Progress bar({.total = 4}, target(true)); }
  EXPECT_THAT(written(), EndsWith("?it/s]\n"));
}

TEST_F(ProgressTest, CountsUpdatesOfAllThreads) {
  Progress bar({.total = 40000}, target(true));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) bar.update();
      bar.message("one");
    });
  }
  for (std::thread& thread : threads) thread.join();
  bar.finish();
  EXPECT_THAT(written(), HasSubstr("40000/40000"));
}

class EnvironmentTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"TQDM_DISABLE", "TQDM_NCOLS", "TQDM_MININTERVAL", "TQDM_ASCII"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(EnvironmentTest, OfTqdmIsHonoured) {
  ::setenv("TQDM_DISABLE", "1", 1);
  ::setenv("TQDM_NCOLS", "77", 1);
  ::setenv("TQDM_MININTERVAL", "2.5", 1);
  ::setenv("TQDM_ASCII", "1", 1);
  const ProgressTarget target = ProgressTarget::standard_error();
  EXPECT_TRUE(target.disabled);
  EXPECT_EQ(target.columns, 77);
  EXPECT_EQ(target.min_interval_s, 2.5);
  EXPECT_EQ(target.fill, kAscii);
}

TEST_F(EnvironmentTest, MayGiveFillCharacters) {
  ::setenv("TQDM_ASCII", " ░█", 1);
  EXPECT_EQ(ProgressTarget::standard_error().fill, (std::vector<std::string>{" ", "░", "█"}));
}

TEST_F(EnvironmentTest, IsOptional) {
  const ProgressTarget target = ProgressTarget::standard_error();
  EXPECT_FALSE(target.disabled);
  EXPECT_EQ(target.columns, 0);
  EXPECT_EQ(target.fill, kUnicode);
}

TEST_F(EnvironmentTest, WithNonsenseIsAnError) {
  ::setenv("TQDM_NCOLS", "wide", 1);
  EXPECT_THAT(error_of([] { ProgressTarget::standard_error(); }),
              HasSubstr("TQDM_NCOLS: is 'wide'; expected a number"));
}

}  // namespace
}  // namespace lra

#include "training/loop/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "base/scratch_folder.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lra::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Metrics : public ::testing::Test {
 protected:
  // Lines of the file, each "KIND STEP".
  std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::ifstream in(folder_.metrics());
    for (std::string line; std::getline(in, line);) {
      const Json json = parse_json(line, folder_.metrics());
      found.push_back(json.at("kind").get<std::string>() + " " + json.at("step").dump());
    }
    return found;
  }
  static void write_steps(MetricsLog& log, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step)
      log.train(step, RunningMean(), 0.1, {1000, 10}, 2);
    log.evaluation("val", {.step = to, .loss = 1, .accuracy = 0.5, .num_examples = 4});
  }
  uintmax_t event_bytes() const {
    uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path)) {
      if (entry.path() != folder_.metrics()) bytes += entry.file_size();
    }
    return bytes;
  }
  void append(const std::string& text) const {
    std::ofstream(folder_.metrics(), std::ios::app) << text;
  }

  ScratchFolder scratch_;
  RunFolder folder_{scratch_.path()};
};

TEST_F(Metrics, AreOneJsonObjectALine) {
  RunningMean mean;
  mean.add(3.0, 2, 4);
  mean.add(5.0, 3, 6);
  MetricsLog log(folder_, 0, false);
  log.train(7, mean, 0.25, {12345, 12.5}, 1.5);
  log.evaluation("val", {.step = 7, .loss = 2.5, .accuracy = 0.125, .num_examples = 8});
  std::ifstream in(folder_.metrics());
  std::string train, val, rest;
  ASSERT_TRUE(std::getline(in, train) && std::getline(in, val));
  EXPECT_FALSE(std::getline(in, rest));
  EXPECT_EQ(parse_json(train, "train"), Json({{"step", 7},
                                              {"kind", "train"},
                                              {"loss", 0.8},
                                              {"accuracy", 0.5},
                                              {"learning_rate", 0.25},
                                              {"gradient_norm", 1.5},
                                              {"tokens_per_s", 12345.0},
                                              {"examples_per_s", 12.5}}));
  EXPECT_EQ(
      parse_json(val, "val"),
      Json({{"step", 7}, {"kind", "val"}, {"loss", 2.5}, {"accuracy", 0.125}, {"examples", 8}}));
}

TEST_F(Metrics, CanBeReadWhileTheRunGoesOn) {
  MetricsLog log(folder_, 0, false);
  write_steps(log, 1, 2);
  EXPECT_THAT(lines(), ElementsAre("train 1", "train 2", "val 2"));
}

// A kill cannot lose lines that are in the files.
TEST_F(Metrics, AlsoReachTheEventFileAtOnce) {
  MetricsLog log(folder_, 0, false);
  uintmax_t before = event_bytes();
  for (int64_t step = 1; step <= 3; ++step) {
    log.train(step, RunningMean(), 0.1, {1000, 10}, 2);
    EXPECT_GT(event_bytes(), before) << step;
    before = event_bytes();
  }
}

TEST_F(Metrics, AfterAResumeStandOnce) {
  {
    MetricsLog log(folder_, 0, false);
    write_steps(log, 1, 3);
    write_steps(log, 4, 6);
  }
  MetricsLog log(folder_, 4, true);
  EXPECT_THAT(lines(), ElementsAre("train 1", "train 2", "train 3", "val 3", "train 4"));
  write_steps(log, 5, 6);
  EXPECT_THAT(lines(), ElementsAre("train 1", "train 2", "train 3", "val 3", "train 4", "train 5",
                                   "train 6", "val 6"));
}

TEST_F(Metrics, LoseAHalfLineAtTheEndAndNothingElse) {
  {
    MetricsLog log(folder_, 0, false);
    write_steps(log, 1, 2);
  }
  for (const char* half : {R"({"step":3,"kind":"tr)", R"({"step":2,"kind":"train"})", "\n{}\n"}) {
    append(half);
    const MetricsLog log(folder_, 2, true);
    EXPECT_THAT(lines(), ElementsAre("train 1", "train 2", "val 2")) << half;
  }
}

TEST_F(Metrics, WriteANumberThatIsNoneAsText) {
  RunningMean mean;
  mean.add(std::numeric_limits<double>::quiet_NaN(), 0, 1);
  MetricsLog log(folder_, 0, false);
  log.train(1, mean, 0.1, {1, 1}, std::numeric_limits<double>::infinity());
  const Json json = parse_json(read_file(folder_.metrics(), 1 << 16), folder_.metrics());
  EXPECT_EQ(json.at("loss"), "nan");
  EXPECT_EQ(json.at("gradient_norm"), "inf");
}

TEST_F(Metrics, AlsoGoToAnEventFile) {
  MetricsLog log(folder_, 0, false);
  write_steps(log, 1, 2);
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path)) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    EXPECT_EQ(events, "") << "a second file";
    events = read_file(entry.path(), 1 << 16);
  }
  for (const char* tag :
       {"train/loss", "train/accuracy", "train/learning_rate", "train/gradient_norm",
        "train/tokens_per_s", "train/examples_per_s", "val/loss", "val/accuracy"}) {
    EXPECT_THAT(events, HasSubstr(tag));
  }
}

TEST(RunningMean, OfNothingIsZeroAndForgetsOnReset) {
  RunningMean mean;
  EXPECT_EQ(mean.loss(), 0);
  EXPECT_EQ(mean.accuracy(), 0);
  mean.add(6, 1, 2);
  EXPECT_EQ(mean.loss(), 3);
  EXPECT_EQ(mean.accuracy(), 0.5);
  EXPECT_EQ(mean.count, 2);
  mean = {};
  EXPECT_EQ(mean.count, 0);
  EXPECT_EQ(mean.loss(), 0);
}

}  // namespace
}  // namespace lra::training

#include "training/loop/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/scratch_folder.h"
#include "training/loop/batches.h"
#include "training/run/test_runs.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMaskedExamples = 40, kLongest = 160;
constexpr TaskShape kPairs{
    .length = kLongest, .vocabulary = 257, .num_classes = 2, .num_towers = 2};

// Pairs of sequences of 1 to 160 bytes.
class MaskedPairs : public ::testing::Test {
 protected:
  MaskedPairs() {
    std::vector<TestExample> examples;
    RandomStream random(6);
    for (int64_t i = 0; i < kMaskedExamples; ++i) {
      TestExample& example = examples.emplace_back(TestExample{0, {{}, {}}});
      for (auto& tower : example.towers) {
        tower.resize(1 + random.below(kLongest));
        for (uint8_t& token : tower) token = static_cast<uint8_t>(random.below(255));
      }
    }
    split_ = write_split(scratch_.file("data"), examples);
  }

  Batch masked(const std::vector<int64_t>& examples, const Masking& masking, int64_t step = 3,
               bool trim = true) const {
    Batch batch = make_batch(split_, examples, kPairs, trim);
    hide_positions(batch, examples, kPairs, masking, step);
    return batch;
  }
  // Hidden positions by (example, tower).
  using Places = std::map<std::pair<int64_t, int64_t>, std::set<int64_t>>;
  static Places places_of(const Batch& batch, const std::vector<int64_t>& examples) {
    Places places;
    for (int64_t m = 0; m < batch.input.places_M.size(0); ++m) {
      const auto place = batch.input.places_M[m].item<int64_t>(),
                 row = place / batch.input.length();
      places[{examples[static_cast<size_t>(row / 2)], row % 2}].insert(place %
                                                                       batch.input.length());
    }
    return places;
  }

  ScratchFolder scratch_;
  Split split_;
  std::vector<int64_t> all_ = [] {
    std::vector<int64_t> all(kMaskedExamples);
    for (int64_t i = 0; i < kMaskedExamples; ++i) all[static_cast<size_t>(i)] = i;
    return all;
  }();
};

TEST_F(MaskedPairs, AreHiddenAtTheGivenRateAndNeverInPadding) {
  for (const double fraction : {0.1, 0.5}) {
    int64_t hidden = 0, tokens = 0;
    for (int64_t step = 0; step < 5; ++step) {
      const Batch batch = masked(all_, {.fraction = fraction, .seed = 1}, step);
      hidden += batch.labels_B.size(0);
      tokens += batch.num_tokens;
      for (const auto& [sequence, positions] : places_of(batch, all_)) {
        EXPECT_LT(*positions.rbegin(), split_.sequence_length(sequence.first, sequence.second));
      }
      EXPECT_EQ(places_of(batch, all_).size(), 2 * kMaskedExamples)
          << "at least one in each sequence";
    }
    const double share = static_cast<double>(hidden) / static_cast<double>(tokens);
    EXPECT_NEAR(share, fraction, 0.015);
  }
}

TEST_F(MaskedPairs, LabelsAreTheTokensThatWereThere) {
  const Batch plain = make_batch(split_, all_, kPairs, true);
  const Batch batch = masked(all_, {.fraction = 0.3, .seed = 1});
  const auto at_hidden = [&](const Batch& of) {
    return of.input.tokens_BL.view(-1).index_select(0, batch.input.places_M).to(at::kLong);
  };
  EXPECT_TRUE(at::equal(batch.labels_B, at_hidden(plain)));
  EXPECT_GT(batch.labels_B.min().item<int64_t>(), 0) << "padding is no label";
  EXPECT_EQ(at_hidden(batch).abs().max().item<int64_t>(), 0);
  EXPECT_EQ(batch.input.tokens_BL.eq(plain.input.tokens_BL).sum().item<int64_t>(),
            plain.input.tokens_BL.numel() - batch.labels_B.size(0))
      << "all other places are as they were";
}

TEST_F(MaskedPairs, FollowExampleTowerStepAndSeedAlone) {
  const Masking masking{.fraction = 0.4, .seed = 1};
  const auto whole = places_of(masked(all_, masking), all_);
  const std::vector<int64_t> few = {17, 3};
  for (const bool trim : {true, false}) {
    for (const auto& [sequence, positions] : places_of(masked(few, masking, 3, trim), few)) {
      EXPECT_EQ(positions, whole.at(sequence));
    }
  }
  EXPECT_EQ(places_of(masked(all_, masking), all_), whole);
  EXPECT_NE(places_of(masked(all_, masking, 4), all_), whole);
  EXPECT_NE(places_of(masked(all_, {.fraction = 0.4, .seed = 2}), all_), whole);
  const Masking other = Masking{.fraction = 0.4, .seed = 2};
  EXPECT_EQ(places_of(masked(all_, masking.fixed(), kNoStep), all_),
            places_of(masked(all_, other.fixed(), kNoStep), all_));
}

TEST_F(MaskedPairs, AreTheSameWithAnyLoader) {
  const auto stream = [&](const LoaderSettings& settings, int64_t first) {
    BatchLoader loader(split_, kPairs, BatchOrder(kMaskedExamples, 8, 1), first, settings);
    at::Tensor labels;
    for (int64_t step = first; step < 9; ++step) labels = loader.next()[0].labels_B;
    return labels;
  };
  const Masking masking{.fraction = 0.15, .seed = 1};
  const at::Tensor expected = stream({.masking = masking}, 0);
  EXPECT_TRUE(at::equal(stream({.prefetch = 4, .threads = 3, .masking = masking}, 0), expected));
  EXPECT_TRUE(at::equal(stream({.masking = masking}, 8), expected)) << "as after a resume";
}

TEST(MaskedPixels, AreTheStoredLevels) {
  std::vector<uint8_t> pixels(256);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i);
  for (const ValueInput& values : {ValueInput{.zero = 122.6, .scale = 1 / 61.0},
                                   ValueInput{.zero = 128, .scale = 1 / 128.0}}) {
    const TaskShape shape{
        .length = 256, .vocabulary = 256, .num_classes = 2, .has_padding = false, .values = values};
    const at::Tensor levels = at::arange(256, at::kInt).view({1, 256});
    Batch batch{.input = input_of(levels, {}, shape), .labels_B = {}, .num_tokens = 256};
    const std::vector<int64_t> examples = {0};
    hide_positions(batch, examples, shape, {.fraction = 0.999, .seed = 1}, 0);
    EXPECT_GT(batch.labels_B.size(0), 250);
    EXPECT_TRUE(at::equal(batch.labels_B, batch.input.places_M)) << "the level is the place here";
    Batch again{.input = input_of(levels, {}, shape), .labels_B = {}, .num_tokens = 256};
    hide_positions(again, examples, shape, {.fraction = 0.999, .as_values = true, .seed = 1}, 0);
    EXPECT_TRUE(at::equal(again.labels_B, batch.labels_B.to(at::kFloat)));
  }
}

TEST(Masking, HidesThePublishedShareOfEachTask) {
  const auto fraction = [](const char* task, const std::vector<std::string>& more = {}) {
    std::vector<std::string> sets = {"train.objective=masked"};
    sets.insert(sets.end(), more.begin(), more.end());
    return resolve_run(task, "transformer", "small", 4, {}, sets).masking().value().fraction;
  };
  EXPECT_EQ(fraction("listops"), 0.1);
  EXPECT_EQ(fraction("text"), 0.15);
  EXPECT_EQ(fraction("retrieval"), 0.15);
  for (const char* task : {"image", "pathfinder", "pathx"}) EXPECT_EQ(fraction(task), 0.5);
  EXPECT_EQ(fraction("text", {"train.mask_fraction=0.3"}), 0.3);
  EXPECT_FALSE(resolve_run("text", "transformer", "small", 4, {}, {}).masking());
}

TEST(Masking, IsRefusedWhereNothingCanBePredicted) {
  const auto error_of = [](const char* task, std::vector<std::string> sets) {
    sets.emplace_back("train.objective=masked");
    try {
      (void)resolve_run(task, "transformer", "small", 0, {}, sets);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of("image", {"model.receptive_field=64"}), HasSubstr("model.receptive_field"));
  EXPECT_THAT(error_of("image", {"train.masked_loss=l1"}), HasSubstr("task.input=values"));
  EXPECT_EQ(error_of("image", {"train.masked_loss=l1", "task.input=values"}), "");
  EXPECT_THAT(error_of("text", {"train.masked_loss=l1"}), HasSubstr("the inputs are tokens"));
}

TEST(Masking, ItsSettingsAreRefusedInRunsThatLearnLabels) {
  for (const char* set : {"train.mask_fraction=0.3", "train.masked_loss=l1"}) {
    try {
      (void)tiny_run({set});
      FAIL() << set;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected train.objective=masked")) << set;
    }
  }
}

// Parity of the ones so far; two rows of other lengths.
TEST(Masking, TasksLabelPlacesOfTokensOnly) {
  const ScratchFolder scratch;
  const Split split = write_split(scratch.file("data"), {{1, {{0, 1}}}, {0, {{1, 1, 0, 1, 1}}}});
  const RunConfig run = resolve_run("state", "s4d", "small", 0, {}, {"task.group=parity"});
  const std::vector<int64_t> examples = {0, 1};
  const TaskShape shape = run.make_task()->shape();
  Batch batch = make_batch(split, examples, shape, true);
  const at::Tensor tokens = batch.input.tokens_BL.clone();
  hide_positions(batch, examples, shape, *run.masking(), 3);
  const int64_t length = batch.input.length();
  EXPECT_TRUE(
      at::equal(batch.input.places_M, at::tensor({int64_t{0}, int64_t{1}, length, length + 1,
                                                  length + 2, length + 3, length + 4})));
  EXPECT_TRUE(at::equal(batch.labels_B, at::tensor({0, 1, 1, 0, 0, 1, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.input.tokens_BL, tokens)) << "nothing is hidden";
}

// Hashes, and so resumes and comparisons of runs that learn labels, stay what they were.
TEST(Masking, LeavesNoSettingInRunsThatLearnLabels) {
  const auto train = [](const RunConfig& run) { return *run.to_table().find("train")->as_table(); };
  const ConfigTable plain = train(tiny_run());
  for (const char* key : {"objective", "mask_fraction", "masked_loss"}) {
    EXPECT_EQ(plain.find(key), nullptr) << key;
  }
  const RunConfig masked = tiny_run({"train.objective=masked", "train.mask_fraction=0.3"});
  EXPECT_EQ(RunConfig::from_table(masked.to_table()).masking()->fraction, 0.3);
}

}  // namespace
}  // namespace lra::training

#include "cli/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/scratch_folder.h"
#include "cli/suite_file.h"
#include "io/atomic_file.h"
#include "io/toml.h"

namespace lra::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Sweep sweep_of(const std::string& toml) { return read_sweep(parse_toml(toml, "suite"), "suite"); }

std::vector<std::string> texts_of(const Sweep& sweep) {
  std::vector<std::string> texts;
  for (const Try& one : tries_of(sweep)) texts.push_back(one.text);
  return texts;
}

double learning_rate(const Try& one) {
  return std::get<double>(one.values.find("train")->as_table()->find("learning_rate")->value);
}

TEST(Sweep, TriesEveryCombinationOfItsLists) {
  const Sweep sweep = sweep_of(
      "[train]\nlearning_rate = [0.001, 0.01]\nschedule = [\"cosine\", \"constant\"]\n"
      "[model]\nlayers = [2]\n");
  EXPECT_THAT(texts_of(sweep), ElementsAre("learning_rate=0.001, schedule=cosine, layers=2",
                                           "learning_rate=0.001, schedule=constant, layers=2",
                                           "learning_rate=0.01, schedule=cosine, layers=2",
                                           "learning_rate=0.01, schedule=constant, layers=2"));
  EXPECT_EQ(tries_of(sweep)[0].name, "learning_rate=0.001,schedule=cosine,layers=2");
  EXPECT_THAT(varied_names(sweep),
              ElementsAre("train.learning_rate", "train.schedule", "model.layers"));
}

TEST(Sweep, TriesAsManyCombinationsAsItIsAllowed) {
  const std::string lists =
      "[train]\nbatch_size = [1, 2, 3, 4, 5, 6, 7, 8]\nwarmup_steps = [1, 2, 3, 4]\n";
  const auto some = texts_of(sweep_of("tries = 5\n" + lists));
  EXPECT_EQ(some.size(), 5u);
  EXPECT_EQ(std::set<std::string>(some.begin(), some.end()).size(), 5u);
  EXPECT_EQ(some, texts_of(sweep_of("tries = 5\n" + lists)));
  EXPECT_NE(some, texts_of(sweep_of("tries = 5\nseed = 1\n" + lists)));
}

TEST(Sweep, ChoosesAmongAllOfManyCombinations) {
  std::string lists = "tries = 200\n[train]\n";
  for (const char* name : {"batch_size", "steps", "warmup_steps", "eval_every", "log_every"})
    lists += std::string(name) + " = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  std::map<std::string, std::set<int64_t>> found;  // of 100,000 combinations
  for (const Try& one : tries_of(sweep_of(lists))) {
    for (const auto& [name, value] : *one.values.find("train")->as_table())
      found[name].insert(std::get<int64_t>(value.value));
  }
  EXPECT_EQ(found.size(), 5u);
  for (const auto& [name, values] : found) EXPECT_EQ(values.size(), 10u) << name;
}

TEST(Sweep, DrawsLogUniformly) {
  const auto tries =
      tries_of(sweep_of("tries = 400\n[train]\nlearning_rate = \"1e-4:1e-2:log\"\n"));
  ASSERT_EQ(tries.size(), 400u);
  int below = 0;  // the middle of the logarithms
  for (const Try& one : tries) {
    const double rate = learning_rate(one);
    EXPECT_GE(rate, 1e-4);
    EXPECT_LE(rate, 1e-2);
    below += rate < 1e-3;
  }
  EXPECT_NEAR(below, 200, 4 * std::sqrt(100.0));  // four standard errors
}

TEST(Sweep, DrawsWholeNumbersFromWholeBounds) {
  std::set<int64_t> found;
  for (const Try& one : tries_of(sweep_of("tries = 4\n[model]\nlayers = \"1:4\"\n")))
    found.insert(std::get<int64_t>(one.values.find("model")->as_table()->find("layers")->value));
  EXPECT_THAT(found, ElementsAre(1, 2, 3, 4));
}

TEST(Sweep, DrawsDependOnlyOnSeedSettingAndTry) {
  const std::string rate = "[train]\nlearning_rate = \"1e-4:1e-2:log\"\n";
  const auto few = tries_of(sweep_of("tries = 3\n" + rate)),
             many = tries_of(sweep_of("tries = 6\n" + rate)),
             other = tries_of(sweep_of("tries = 3\nseed = 7\n" + rate)),
             two = tries_of(sweep_of("tries = 3\n" + rate + "weight_decay = \"0:0.3\"\n"));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(few[i].text, many[i].text) << "more tries begin with the same";
    EXPECT_NE(few[i].text, other[i].text);
    EXPECT_EQ(learning_rate(few[i]), learning_rate(two[i])) << "whatever else varies";
  }
  // The numbers of this version: a sweep is repeated years later.
  EXPECT_EQ(few[0].text, "learning_rate=0.00305");
}

TEST(Sweep, LongSettingsAreNamedByTheirHash) {
  const auto tries =
      tries_of(sweep_of("[train]\nclass_weights = [\"" + std::string(60, 'a') + "\"]\n"));
  EXPECT_EQ(tries[0].name.size(), 16u);
}

TEST(Sweep, RefusesWhatCannotBeCompared) {
  const auto error = [](const std::string& toml) {
    return error_of([&] { tries_of(sweep_of(toml)); });
  };
  EXPECT_THAT(error("[train]\nlearning_rate = []\n"),
              AllOf(HasSubstr("suite:2: train.learning_rate is an empty list"),
                    HasSubstr("1e-4:1e-2:log")));
  EXPECT_THAT(error("tries = 3\n[train]\nlearning_rate = \"0:1:log\"\n"),
              HasSubstr("which has no logarithm; expected a lower end above 0"));
  EXPECT_THAT(error("tries = 3\n[train]\nlearning_rate = \"1:0.1\"\n"),
              HasSubstr("is drawn from 1:0.1; expected a lower end below the upper one"));
  EXPECT_THAT(error("[train]\nlearning_rate = 0.1\n"),
              HasSubstr("has one value, and nothing to compare"));
  EXPECT_THAT(error("[train]\nlearning_rate = \"1e-4:1e-2:log\"\n"),
              HasSubstr("does not say how often"));
  EXPECT_THAT(error("tries = 9\n[train]\nsteps = [1, 2]\n"),
              HasSubstr("the lists have 2 combinations"));
  EXPECT_THAT(error("tries = 9\n[train]\nsteps = \"1:4\"\n"),
              HasSubstr("the ranges have fewer settings"));
  EXPECT_THAT(error("[train]\nsteps = [1, 1]\n"), HasSubstr("has the value 1 twice"));
  EXPECT_THAT(error("[task]\nlength = [32, 64]\n"), HasSubstr("task.length changes the data"));
  for (const char* name : {"objective", "mask_fraction", "masked_loss", "eval_examples",
                           "test_examples", "token_order"}) {
    EXPECT_THAT(error(std::string("[train]\n") + name + " = [1, 2]\n"),
                HasSubstr(std::string("train.") + name + " changes what the score measures"));
  }
  for (const char* range : {"16:99999999999999999999", "-99999999999999999999:16"}) {
    EXPECT_THAT(error(std::string("tries = 2\n[model]\nembed_dim = \"") + range + "\"\n"),
                HasSubstr("expected whole numbers of at most 2^53"));
  }
  EXPECT_THAT(error("halving = 1\n[train]\nsteps = [1, 2]\n"),
              HasSubstr("every setting would go on"));
  EXPECT_THAT(error("tries = 2\n"), HasSubstr("varies no setting"));
  EXPECT_THAT(error("try = 2\n[train]\nsteps = [1, 2]\n"), HasSubstr("'try' outside of a section"));
}

TEST(Sweep, IsReadFromASuite) {
  const ScratchFolder folder;
  const std::string file = folder.file("lr.toml");
  write_file_atomically(file,
                        "tasks = [\"listops\"]\nmodels = [\"local\"]\nseeds = [0, 1]\n"
                        "[sweep.train]\nlearning_rate = [0.001, 0.01]\n");
  const Suite suite = read_suite(file);
  ASSERT_TRUE(suite.sweep.has_value());
  EXPECT_EQ(tries_of(*suite.sweep).size(), 2u);
}

TEST(Halving, ComparesAtValidationsBeforeTheEnd) {
  EXPECT_THAT(milestones(900, 100, 3, 9), ElementsAre(100, 300));
  EXPECT_THAT(milestones(5000, 500, 3, 9), ElementsAre(1000, 2000)) << "556 and 1667, rounded up";
  EXPECT_THAT(milestones(900, 400, 3, 9), ElementsAre(400)) << "both round up to the same";
  EXPECT_THAT(milestones(900, 900, 3, 9), ElementsAre());
  EXPECT_THAT(milestones(900, 100, 3, 1), ElementsAre()) << "nothing to compare";
  EXPECT_THAT(milestones(900, 100, 0, 9), ElementsAre());
}

TEST(Halving, KeepsOneInSoMany) {
  EXPECT_EQ(kept_of(9, 3), 3u);
  EXPECT_EQ(kept_of(3, 3), 1u);
  EXPECT_EQ(kept_of(5, 2), 3u) << "rounded up";
  EXPECT_EQ(kept_of(1, 2), 1u) << "never none";
}

TEST(Scores, FewerSeedsThatDivergedComeFirstThenTheMeanOfTheOthers) {
  EXPECT_DOUBLE_EQ(score_of_seeds({0.25, 0.75}), 0.5);
  const double one = score_of_seeds({0.5, std::nullopt}),
               better_one = score_of_seeds({std::nullopt, 0.6}),
               two = score_of_seeds({std::nullopt, std::nullopt});
  EXPECT_GT(score_of_seeds({0.0, 0.0}), better_one);
  EXPECT_GT(better_one, one);
  EXPECT_GT(score_of_seeds({0.0, std::nullopt}), two);
  EXPECT_LT(one, 0) << "what diverged has no accuracy to show";
}

TEST(Halving, TakesTheBestAndOfEqualsTheEarlier) {
  const std::vector<double> scores = {0.2, 0.5, -1, 0.5, 0.4};
  EXPECT_THAT(best_of({4, 3, 2, 1, 0}, scores, 3), ElementsAre(1, 3, 4));
  EXPECT_THAT(best_of({0, 2}, scores, 1), ElementsAre(0)) << "of those that are left";
  EXPECT_THAT(best_of({2}, scores, 3), ElementsAre(2));
}

}  // namespace
}  // namespace lra::cli

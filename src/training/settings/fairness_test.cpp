#include "training/settings/fairness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/run/test_runs.h"
#include "training/settings/presets.h"

namespace lra::training {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFair = "apples-to-apples";
constexpr const char* kFree = "free-for-all";

RunConfig release(const std::string& model, const std::vector<std::string>& sets = {}) {
  return resolve_run("text", model, "release", 0, {}, sets);
}

TEST(Fairness, TakesTheBaseTransformerAsItIs) {
  const RunRecord fairness = judge(release("transformer"));
  EXPECT_EQ(fairness.num_parameters, 3486722);
  EXPECT_EQ(fairness.base_parameters, fairness.num_parameters);
  EXPECT_EQ(fairness.division, kFair);
  EXPECT_THAT(fairness.division_reason, HasSubstr("1.00 times"));
}

TEST(Fairness, TakesAModelWithALittleMoreParameters) {
  const RunRecord fairness = judge(release("linformer"));
  EXPECT_EQ(fairness.num_parameters, 3486722 + 4 * 1001 * 16);
  EXPECT_EQ(fairness.division, kFair);
  EXPECT_THAT(fairness.division_reason, HasSubstr("1.02 times"));
}

TEST(Fairness, SetsAModelApartThatHasOverATenthMore) {
  const auto linformer = [](const char* rank) {
    return resolve_run("listops", "linformer", "release", 0, {}, {rank});
  };
  const RunRecord fairness = judge(linformer("mixer.rank=256"));
  EXPECT_EQ(fairness.base_parameters, 8948746);
  EXPECT_EQ(fairness.num_parameters, 8948746 + 4 * 2001 * 256);
  EXPECT_EQ(fairness.division, kFree);
  EXPECT_THAT(fairness.division_reason, HasSubstr("1.23 times"));
  EXPECT_THAT(fairness.division_reason, HasSubstr("at most 1.10"));
  // 894874 parameters are a tenth: rank 111 adds 888444, rank 112 adds 896448.
  EXPECT_EQ(judge(linformer("mixer.rank=111")).division, kFair);
  EXPECT_EQ(judge(linformer("mixer.rank=112")).division, kFree);
}

TEST(Fairness, SetsARunApartThatChangesTheSettingOfItsPreset) {
  for (const auto& [set, reason] :
       {std::pair("train.steps=10", "train.steps 10 instead of 20000"),
        std::pair("train.test_examples=50", "train.test_examples 50 instead of 0"),
        std::pair("task.length=100", "task.length 100 instead of 1000"),
        std::pair("train.class_weights=balanced", "train.class_weights \"balanced\""),
        std::pair("train.label_smoothing=0.1", "train.label_smoothing 0.1"),
        std::pair("train.precision=bf16", "train.precision \"bf16\" instead of \"fp32\""),
        std::pair("model.dropout=0.5", "model.dropout 0.5 instead of 0.1")}) {
    const RunRecord fairness = judge(release("transformer", {set}));
    EXPECT_EQ(fairness.division, kFree) << set;
    EXPECT_EQ(fairness.division_reason, reason);
  }
  for (const char* set :
       {"train.log_every=1", "train.prefetch=0", "train.loader_threads=4", "train.eval_every=7",
        "train.recompute=true", "train.memory_check=off", "train.max_skips=20"}) {
    EXPECT_EQ(judge(release("transformer", {set})).division, kFair) << set;
  }
  EXPECT_EQ(
      judge(release("transformer", {"train.on_nonfinite=skip", "train.max_skips=20"})).division,
      kFree);
}

TEST(Fairness, SetsARunApartWhoseDataAreNotTheTasks) {
  const auto on = [](const std::string& task, const SplitSizes& data) {
    return judge(resolve_run(task, "transformer", "release", 0, {}, {}), data);
  };
  const RunRecord few = on("listops", {.train = 64, .val = 2000, .test = 2000});
  EXPECT_EQ(few.division, kFree);
  EXPECT_EQ(few.division_reason, "data of 64 training examples instead of 96,000");
  EXPECT_FALSE(few.published_setting);
  EXPECT_THAT(on("listops", {.train = 96000, .val = 2000, .test = 16}).division_reason,
              HasSubstr("16 test examples instead of 2,000"));
  EXPECT_EQ(on("pathfinder", {.train = 8, .val = 1, .test = 1}).division_reason,
            "data of 10 examples instead of 200,000");
  EXPECT_EQ(on("listops", {.train = 96000, .val = 2000, .test = 2000}).division, kFair);
  EXPECT_EQ(on("text", {.train = 25000, .val = 0, .test = 25000}).division, kFair);
  EXPECT_EQ(on("pathfinder", {.train = 160000, .val = 20000, .test = 20000}).division, kFair);
}

TEST(Fairness, NamesAChangedMechanism) {
  const RunRecord fairness = judge(release("local", {"mixer.block=100"}));
  EXPECT_EQ(fairness.division, kFair);
  EXPECT_TRUE(fairness.published_setting);
  EXPECT_THAT(fairness.division_reason,
              HasSubstr("but for the mechanism's mixer.block 100 instead of 50"));
}

TEST(Fairness, TakesWhatThePaperHasBesideItsPreset) {
  const auto paper = [](const char* task, const char* set) {
    return judge(resolve_run(task, "transformer", "paper", 0, {}, {set}));
  };
  EXPECT_EQ(paper("listops", "train.steps=10000").division, kFair);
  EXPECT_EQ(paper("listops", "train.steps=10001").division, kFree);
  EXPECT_EQ(paper("text", "task.length=1000").division, kFair);
  EXPECT_EQ(paper("text", "task.length=1001").division, kFree);
}

// Figures of the paper may stand beside its own models, whatever their size.
TEST(Fairness, KnowsAPublishedSettingInEitherDivision) {
  const auto released = [](const char* task, const char* model) {
    return judge(resolve_run(task, model, "release", 0, {}, {}));
  };
  EXPECT_TRUE(released("text", "transformer").published_setting);
  const RunRecord reformer = released("image", "reformer");  // of other sizes than the Transformer
  EXPECT_EQ(reformer.division, kFree);
  EXPECT_TRUE(reformer.published_setting);
  EXPECT_FALSE(judge(release("transformer", {"train.steps=10"})).published_setting);
  EXPECT_FALSE(judge(resolve_run("text", "transformer", "small", 0, {}, {})).published_setting);
}

TEST(Fairness, CountsAModelThatWouldNotFit) {
  const RunConfig run = resolve_run("pathfinder256", "synthesizer", "release", 0, {}, {});
  EXPECT_GT(count_parameters(run), int64_t{10'000'000'000});
}

TEST(Fairness, LeavesOutWhatHasNoEffect) {
  EXPECT_EQ(judge(release("linear_transformer", {"model.attention_dropout=0.7"})).division, kFair);
  EXPECT_EQ(judge(release("local", {"model.attention_dropout=0.7"})).division, kFree);
  EXPECT_EQ(judge(release("local", {"model.pair_features=concat"})).division, kFair);
  EXPECT_EQ(judge(resolve_run("retrieval", "local", "release", 0, {}, {"model.pair_features=nli"}))
                .division,
            kFree);
}

TEST(Fairness, NamesTheSizeThatWasChanged) {
  for (const auto& [set, reason] :
       {std::pair("model.layers=2", "layers 2 instead of 4"),
        std::pair("model.embed_dim=128", "embed_dim 128 instead of 256"),
        std::pair("model.qkv_dim=128", "qkv_dim 128 instead of 256"),
        std::pair("model.mlp_dim=64", "mlp_dim 64 instead of 1024")}) {
    const RunRecord fairness = judge(release("transformer", {set}));
    EXPECT_EQ(fairness.division, kFree) << set;
    EXPECT_EQ(fairness.division_reason, reason);
    EXPECT_LT(fairness.num_parameters, fairness.base_parameters);
  }
}

TEST(Fairness, HasNothingToSayForTheSmallPreset) {
  const RunRecord fairness = judge(resolve_run("listops", "transformer", "small", 0, {}, {}));
  EXPECT_EQ(fairness.num_parameters, fairness.base_parameters);
  EXPECT_EQ(fairness.division, kFree);
  EXPECT_THAT(fairness.division_reason, HasSubstr("small preset"));
}

TEST(Fairness, SetsRunsOfEditedPresetsApart) {
  const std::string edited = "configs/tasks/text.toml is not the file";
  const RunRecord fairness = judge(release("transformer"), {}, "", edited);
  EXPECT_EQ(fairness.division, kFree);
  EXPECT_EQ(fairness.division_reason, edited);
  EXPECT_FALSE(fairness.published_setting);
}

TEST(Fairness, SetsMaskedRunsOfShuffledTokensApart) {
  const auto division = [](const std::vector<std::string>& sets) {
    return judge(tiny_run(sets)).division;
  };
  EXPECT_EQ(division({"train.objective=masked"}), "pretraining");
  EXPECT_EQ(division({"train.objective=masked", "train.token_order=shuffled"}), kFree);
}

}  // namespace
}  // namespace lra::training

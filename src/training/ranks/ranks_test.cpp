#include "training/ranks/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <array>

#include "base/scratch_folder.h"
#include "ops/test_tensors.h"
#include "training/loop/evaluate.h"
#include "training/loop/stepper.h"
#include "training/loop/test_trainer.h"
#include "training/ranks/agreement.h"
#include "training/ranks/test_ranks.h"
#include "training/run/make_model.h"

namespace lra::training {
namespace {

TEST(Ranks, AddUpToTheSameBitsOnAll) {
  std::vector<at::Tensor> sums(3);
  at::Tensor expected = at::zeros({1000}, at::kDouble);
  for (int64_t rank = 0; rank < 3; ++rank) {
    expected += at::arange(1000, at::kDouble).add_(1).pow_(-0.5 * static_cast<double>(rank + 1));
  }
  on_ranks(3, [&](Ranks& ranks) {
    at::Tensor x = at::arange(1000, at::kDouble)
                       .add_(1)
                       .pow_(-0.5 * static_cast<double>(ranks.rank() + 1))
                       .to(at::kFloat);
    ranks.begin_sum(x);
    ranks.wait();
    sums[static_cast<size_t>(ranks.rank())] = x;
  });
  EXPECT_TRUE(at::allclose(sums[0].to(at::kDouble), expected, 1e-6, 0));
  EXPECT_TRUE(at::equal(sums[0], sums[1]));
  EXPECT_TRUE(at::equal(sums[0], sums[2]));
}

TEST(Ranks, TellWhetherTextsAreEqual) {
  on_ranks(3, [](Ranks& ranks) {
    EXPECT_TRUE(ranks.all_equal("weights"));
    EXPECT_FALSE(ranks.all_equal(ranks.rank() == 2 ? "others" : "weights"));
    EXPECT_FALSE(ranks.all_equal(std::to_string(ranks.rank())));
    EXPECT_EQ(ranks.count_on_this_machine(), 3);
  });
}

TEST(Ranks, FailTogetherWhenTheFirstFails) {
  std::array<ExitCode, 2> codes{};
  std::array<std::string, 2> texts;
  on_ranks(2, [&](Ranks& ranks) {
    const auto rank = static_cast<size_t>(ranks.rank());
    int64_t calls = 0;
    ranks.on_first([&] { ++calls; });
    EXPECT_EQ(calls, ranks.is_first() ? 1 : 0);
    try {
      ranks.on_first([] { throw io_error("disk", "is full", ENOSPC); });
    } catch (const Error& error) {
      codes[rank] = error.code();
      texts[rank] = error.what();
    }
  });
  EXPECT_EQ(codes, (std::array<ExitCode, 2>{ExitCode::kIoError, ExitCode::kIoError}));
  EXPECT_THAT(texts[0], testing::HasSubstr("disk: is full"));
  EXPECT_THAT(texts[1], testing::HasSubstr("rank 1 of 2: rank 0 cannot continue"));
}

TEST(Ranks, NoticeThatOneIsGone) {
  std::string text;
  on_ranks(2, [&](Ranks& ranks) {
    if (ranks.rank() == 1) return;
    try {
      ranks.barrier();
      ADD_FAILURE() << "there is nobody to wait for";
    } catch (const LostRank& lost) {
      text = lost.at_step(7, "").what();
      EXPECT_EQ(lost.code(), ExitCode::kIoError);
    }
  });
  EXPECT_EQ(text, "rank 0 of 2: rank 1 was lost after step 7");
}

TEST(Ranks, SayWhoDidNotCome) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  try {
    (void)join_ranks_at(store, {.rank = 0, .num_ranks = 3, .address = "127.0.0.1"},
                        std::chrono::milliseconds(50));
    ADD_FAILURE() << "there is nobody to join";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kIoError);
    EXPECT_THAT(error.what(), testing::HasSubstr("rank 0 of 3: did not connect within"));
    EXPECT_THAT(error.what(), testing::HasSubstr(": rank 1, 2"));
  }
}

TEST(Agreement, OneRankStopsAndSavesAll) {
  on_ranks(2, [](Ranks& ranks) {
    Agreement agreement(ranks, [&] { return ranks.is_first() ? 5.0 : 9.0; });
    agreement.settle({0, 0, 3});
    EXPECT_FALSE(agreement.stop());
    EXPECT_FALSE(agreement.take_save_request());
    Agreement::Numbers numbers = {ranks.rank() == 1 ? 1.0 : 0.0, ranks.rank() == 0 ? 1.0 : 0.0,
                                  agreement.notices()[2]};
    ranks.sum(numbers);
    agreement.settle(numbers);
    EXPECT_TRUE(agreement.stop());
    EXPECT_TRUE(agreement.take_save_request());
    EXPECT_FALSE(agreement.take_save_request()) << "answered once";
    EXPECT_EQ(agreement.seconds(), 5.0) << "the first rank's clock counts";
  });
}

constexpr TaskShape kRankShape{.length = 100, .vocabulary = 16, .num_classes = 4};
constexpr int64_t kRankExamples = 8;

struct Model {
  explicit Model(const RunConfig& config)
      : model(make_model(config, kRankShape)), parameters(model) {}
  models::SequenceClassifier model;
  FlatParameters parameters;
};

class OnRanks : public ::testing::Test {
 protected:
  OnRanks() {
    std::vector<TestExample> examples;
    RandomStream random(4);
    for (int64_t i = 0; i < kRankExamples; ++i) {
      std::vector<uint8_t> tokens(static_cast<size_t>(3 + 11 * i));
      for (uint8_t& token : tokens) token = static_cast<uint8_t>(random.below(15));
      examples.push_back({static_cast<int32_t>(random.below(4)), {tokens}});
    }
    split_ = write_split(scratch_.file("data"), examples);
  }
  std::vector<Batch> parts(StepParts parts) const {
    BatchLoader loader(split_, kRankShape, BatchOrder(kRankExamples, kRankExamples, 1), 0,
                       {.parts = parts});
    return loader.next();
  }

  OneThread one_thread_;
  ScratchFolder scratch_;
  Split split_;
};

TEST_F(OnRanks, TheyDropWhatTheMicroBatchesOfOneRankDrop) {
  for (const bool recompute : {false, true}) {
    const RunConfig config =
        tiny_run({"model.dropout=0.2", "model.attention_dropout=0.1",
                  recompute ? "train.recompute=true" : "train.recompute=false"});
    Model alone(config);
    Stepper stepper(alone.model, alone.parameters, config.train, config.seed);
    const StepLoss whole = stepper.gradients(parts({.count = 4, .of = 4}), 3);
    for (const int64_t count : {2, 4}) {
      SCOPED_TRACE(count);
      std::vector<at::Tensor> gradients(static_cast<size_t>(count));
      on_ranks(count, [&](Ranks& ranks) {
        Model one(config);
        Stepper own(one.model, one.parameters, config.train, config.seed, ranks);
        const int64_t each = 4 / count;
        std::array<double, 1> shared = {1};
        const StepLoss loss =
            own.gradients(parts({.first = ranks.rank() * each, .count = each, .of = 4}), 3, shared);
        gradients[static_cast<size_t>(ranks.rank())] = one.parameters.gradients;
        EXPECT_NEAR(loss.loss_sum, whole.loss_sum, 1e-12 * whole.loss_sum);
        EXPECT_EQ(loss.correct, whole.correct);
        EXPECT_EQ(loss.examples, kRankExamples);
        EXPECT_EQ(loss.tokens, whole.tokens);
        EXPECT_GE(loss.computed_tokens, loss.tokens);
        EXPECT_EQ(shared[0], static_cast<double>(count));
      });
      for (const at::Tensor& other : gradients) EXPECT_TRUE(at::equal(other, gradients[0]));
      EXPECT_LE(ops::relative_error(gradients[0], alone.parameters.gradients), 1e-6);
    }
  }
}

TEST_F(OnRanks, GradientsInManyPiecesAreThoseInOne) {
  const RunConfig config = tiny_run({"model.dropout=0"});
  std::vector<at::Tensor> sums(2), own(2);
  on_ranks(2, [&](Ranks& ranks) {
    Model one(config);
    const auto rank = static_cast<size_t>(ranks.rank());
    const Batch batch = parts({.first = ranks.rank(), .count = 1, .of = 2})[0];
    const auto backward = [&] {
      at::cross_entropy_loss(one.model.forward(batch.input, {}), batch.labels_B).backward();
    };
    backward();
    own[rank] = one.parameters.gradients.clone();
    one.parameters.zero_gradients();
    GradientSum sum(one.parameters, ranks, 1000);
    backward();  // not watched: a micro-batch that is not the last
    EXPECT_TRUE(at::equal(one.parameters.gradients, own[rank]));
    one.parameters.zero_gradients();
    sum.begin();
    backward();
    sum.end();
    ranks.wait();
    sums[rank] = one.parameters.gradients.clone();
  });
  EXPECT_TRUE(at::equal(sums[0], sums[1]));
  EXPECT_TRUE(at::equal(sums[0], own[0] + own[1]));
}

TEST_F(OnRanks, EvaluationHasTheBitsOfOneProcess) {
  const Model one(tiny_run());
  const auto expected = evaluate(one.model, split_, kRankShape, 3, 0, {});
  for (const int64_t count : {2, 4}) {
    on_ranks(count, [&](Ranks& ranks) {
      const Model own(tiny_run());
      int64_t told = 0;
      const auto found = evaluate(
          own.model, split_, kRankShape, 3, 0, [&](int64_t n) { told += n; }, ranks);
      EXPECT_EQ(found.summary.loss, expected.summary.loss);
      EXPECT_EQ(found.summary.accuracy, expected.summary.accuracy);
      EXPECT_EQ(found.summary.num_examples, kRankExamples);
      EXPECT_EQ(found.confusion, expected.confusion);
      EXPECT_EQ(told, kRankExamples);
    });
  }
}

class TrainingOnRanks : public TinyTraining {
 protected:
  // All ranks' records of one run.
  std::vector<RunRecord> run_on(int64_t count, const RunConfig& config, const std::string& name,
                                bool resume = false) const {
    std::vector<RunRecord> records(static_cast<size_t>(count));
    on_ranks(count, [&](Ranks& ranks) {
      TrainOptions options;
      options.data_root = scratch_.file("data");
      options.resume = resume;
      options.quiet = true;
      Trainer trainer(prepare_run(config, folder(name), options, ranks), ranks);
      records[static_cast<size_t>(ranks.rank())] = trainer.run();
    });
    return records;
  }
};

TEST_F(TrainingOnRanks, AllEndWithTheSameWeightsAndInEveryRunAgain) {
  const RunConfig config = kept_run();
  const auto records = run_on(4, config, "a"), again = run_on(4, config, "b");
  for (const auto& record : records) EXPECT_EQ(record.weights_hash, records[0].weights_hash);
  expect_same_end(records[0], "a", again[0], "b");
  EXPECT_EQ(records[0].provenance.ranks, 4);
}

TEST_F(TrainingOnRanks, AnyNumberHasTheLossesOfMicroBatches) {
  const RunRecord one = run(kept_run({"train.accumulate=4"}), "one");
  std::vector<double> expected;
  (void)metric_lines("one", &expected);
  for (const int64_t count : {2, 4}) {
    const std::string name = "on" + std::to_string(count);
    const auto records =
        run_on(count, kept_run({"train.accumulate=" + std::to_string(4 / count)}), name);
    std::vector<double> losses;
    (void)metric_lines(name, &losses);
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5);
    EXPECT_NEAR(records[0].test->loss, one.test->loss, 1e-5);
    EXPECT_EQ(records[0].tokens, one.tokens);
  }
}

TEST_F(TrainingOnRanks, AnotherNumberGoesOn) {
  const RunConfig config = kept_run({"model.dropout=0", "model.attention_dropout=0"});
  const auto whole = run_on(2, config, "whole");
  copy_killed_after("whole", "cut", 6);
  const auto four = run_on(4, config, "cut", true);
  EXPECT_EQ(four[0].status, RunStatus::kDone);
  EXPECT_EQ(four[0].fingerprint, whole[0].fingerprint);
  EXPECT_NEAR(four[0].test->loss, whole[0].test->loss, 1e-5);
  copy_killed_after("whole", "same", 6);
  expect_same_end(whole[0], "whole", run_on(2, config, "same", true)[0], "same");
}

TEST_F(TrainingOnRanks, RefusesRanksThatAreNotOfOneRun) {
  const auto refusal = [&](const std::string& setting, const std::string& revision) {
    try {
      on_ranks(2, [&](Ranks& ranks) {
        const std::string own = std::to_string(ranks.rank());
        std::vector<std::string> sets;
        if (!setting.empty()) sets.push_back(setting + own);
        TrainOptions options;
        options.data_root = scratch_.file("data");
        options.quiet = true;
        if (!revision.empty()) options.provenance.git_revision = revision + own;
        Trainer(prepare_run(tiny_run(sets), folder("refused"), options, ranks), ranks);
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUserError);
      EXPECT_FALSE(fs::exists(folder("refused").record()));
      return std::string(error.what());
    }
    return std::string("taken");
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("train.learning_rate=0.1", ""),
              HasSubstr("rank 0 of 2: the ranks have different settings"));
  EXPECT_THAT(refusal("", "abc"), HasSubstr("different programs"));
}

TEST_F(TrainingOnRanks, RefusesABatchThatTheyCannotShare) {
  for (const auto& sets : {std::vector<std::string>{"train.batch_size=9"},
                           std::vector<std::string>{"train.batch_size=8", "train.accumulate=5"}}) {
    try {
      (void)run_on(2, tiny_run(sets), "refused");
      ADD_FAILURE() << "taken: " << sets[0];
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUserError);
      EXPECT_THAT(error.what(), testing::HasSubstr("train.batch_size"));
      EXPECT_FALSE(fs::exists(folder("refused").record()));
    }
  }
}

}  // namespace
}  // namespace lra::training

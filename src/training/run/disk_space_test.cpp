#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/scratch_folder.h"
#include "training/loop/trainer.h"
#include "training/run/checkpoint.h"
#include "training/run/test_runs.h"

namespace lra::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

FlatParameters parameters_of_width(int64_t width) {
  return FlatParameters({{"encoder.layers.0.weight", at::zeros({width, width})},
                         {"encoder.layers.0.bias", at::zeros({width})}});
}

TrainConfig schedule(int64_t steps, int64_t eval_every, int64_t checkpoint_every) {
  TrainConfig train;
  train.steps = steps;
  train.eval_every = eval_every;
  train.checkpoint_every = checkpoint_every;
  return train;
}

uint64_t written_bytes(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && !entry.is_symlink()) bytes += entry.file_size();
  }
  return bytes;
}

TEST(CheckpointBytes, AreThoseThatAreWritten) {
  for (const int64_t width : {1, 300}) {
    const ScratchFolder scratch;
    const FlatParameters flat = parameters_of_width(width);
    CheckpointStore(scratch.file("checkpoints"), 1, {RunIdentity{}})
        .save(flat, {.step = 1000000}, true);
    const uint64_t written = written_bytes(scratch.file("checkpoints"));
    EXPECT_GE(checkpoint_bytes(flat), written);
    EXPECT_LE(checkpoint_bytes(flat), written + (16 << 10) + 2 * 600);
  }
}

// Each step at which the trainer saves, one after the other.
int64_t counted_saves(const TrainConfig& train, int64_t step) {
  int64_t count = 0;
  while (++step <= train.steps) {
    count += step == train.steps || step % train.eval_every == 0 ||
             (train.checkpoint_every > 0 && step % train.checkpoint_every == 0);
  }
  return count;
}

TEST(SavesAhead, AreThoseOfTheTrainer) {
  for (const int64_t steps : {1, 7, 60}) {
    for (const int64_t eval_every : {1, 6, 20, 500}) {
      for (const int64_t checkpoint_every : {0, 1, 8, 20, 900}) {
        const TrainConfig train = schedule(steps, eval_every, checkpoint_every);
        for (int64_t step = 0; step <= steps; ++step) {
          EXPECT_EQ(saves_ahead(train, step), counted_saves(train, step))
              << steps << " " << eval_every << " " << checkpoint_every << " " << step;
        }
      }
    }
  }
  EXPECT_EQ(saves_ahead(schedule(1000000000, INT64_MAX, INT64_MAX), 0), 1);
  EXPECT_EQ(saves_ahead(schedule(1000000000, INT64_MAX, INT64_MAX - 1), 0), 1);
  EXPECT_EQ(saves_ahead(schedule(1000000000, 10, 4), 0), 300'000'000);
}

TEST(Room, IsThereForAFewSmallOnesAndNotForAThousandMillion) {
  const ScratchFolder scratch;
  const FlatParameters flat = parameters_of_width(100);
  TrainConfig train = schedule(1000000000, 1, 0);
  refuse_without_room({scratch.path()}, flat, train, 0, false);
  train.keep_checkpoints = train.steps;
  const auto refused = [&] { refuse_without_room({scratch.path()}, flat, train, 0, false); };
  EXPECT_THAT(error_of(refused),
              AllOf(HasSubstr("are free; expected room for 1,000,000,000 checkpoints of"),
                    HasSubstr("train.keep_checkpoints")));
  EXPECT_THAT(error_of([&] { refuse_without_room({scratch.path()}, flat, train, 0, true); }),
              HasSubstr("room for 1,000,000,001 checkpoints of"));
  refuse_without_room({scratch.path()}, flat, train, train.steps - 3, false);
}

TEST(Room, IsAskedForBeforeTheRunBegins) {
  const ScratchFolder scratch;
  const RunConfig config =
      tiny_run({"train.keep_checkpoints=1000000000", "train.steps=1000000000"});
  const RunFolder folder{scratch.path()};
  const TrainOptions options{.data_root = scratch.path(), .quiet = true, .provenance = {}};
  EXPECT_THAT(error_of([&] { Trainer(prepare_run(config, folder, options)).run(); }),
              HasSubstr("are free"));
  EXPECT_FALSE(std::filesystem::exists(folder.record()));
}

}  // namespace
}  // namespace lra::training

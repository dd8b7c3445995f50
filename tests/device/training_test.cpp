// Training on a device, and changing the device at a resume: the files of the run are the CPU's.
#include "training/loop/trainer.h"

#include <atomic>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "stand_in.h"
#include "training/loop/test_trainer.h"
#include "training/ranks/test_ranks.h"
#include "training/run/tensor_memory.h"

namespace lra::training {
namespace {

// A backend for the stand-in, as NCCL is one for a GPU: it sums tensors there when they are waited
// for, and refuses others.
struct SumsCounted {
  std::atomic<int64_t> waits = 0, sums = 0, aborts = 0;

  OpenBackend open() {
    return [this](const auto& store, const Launch& launch, auto timeout) {
      return c10::make_intrusive<Backend>(*this, store, launch, timeout);
    };
  }

 private:
  struct Work : c10d::Work {
    Work(SumsCounted& counted, c10d::Backend& host, at::Tensor x)
        : counted(counted), host(host), x(std::move(x)) {}
    bool wait(std::chrono::milliseconds) override {
      ++counted.waits;
      std::vector<at::Tensor> copy = {x.cpu()};
      const bool done = host.allreduce(copy)->wait();
      x.copy_(copy[0]);
      ++counted.sums;
      return done;
    }
    SumsCounted& counted;
    c10d::Backend& host;
    at::Tensor x;
  };
  struct Backend : c10d::Backend {
    Backend(SumsCounted& counted, const c10::intrusive_ptr<c10d::Store>& store,
            const Launch& launch, std::chrono::milliseconds timeout)
        : c10d::Backend(static_cast<int>(launch.rank), static_cast<int>(launch.num_ranks)),
          counted(counted) {
      const auto options = c10d::ProcessGroupGloo::Options::create(timeout);
      options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
      host = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("there", store), getRank(), getSize(), options);
    }
    c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                             const c10d::AllreduceOptions&) override {
      EXPECT_EQ(tensors.at(0).device(), stand_in());
      return c10::make_intrusive<Work>(counted, *host, tensors.at(0));
    }
    void abort() override { ++counted.aborts; }
    SumsCounted& counted;
    c10::intrusive_ptr<c10d::Backend> host;
  };
};

class TrainingOnADevice : public TinyTraining {
 protected:
  RunRecord run_on(at::Device device, const RunConfig& config, const std::string& name,
                   bool resume = false) const {
    TrainOptions options;
    options.data_root = scratch_.file("data");
    options.device = device;
    options.resume = resume;
    options.quiet = true;
    options.histogram_every = 5;
    const int64_t before = stand_in_calls();
    const RunRecord record = Trainer(prepare_run(config, folder(name), options)).run();
    EXPECT_EQ(stand_in_calls() > before, device == stand_in());
    return record;
  }
};

TEST_F(TrainingOnADevice, EndsWithTheBitsOfTheCpu) {
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{},
        {"train.accumulate=3", "train.on_nonfinite=skip", "train.clip_norm=0.5",
         "model.norm=batch"},
        {"train.precision=bf16", "train.recompute=true", "train.test_checkpoint=best"}}) {
    const RunConfig config = kept_run(sets);
    const std::string name = std::to_string(sets.size());
    const RunRecord here = run_on(at::kCPU, config, "cpu" + name);
    const RunRecord there = run_on(stand_in(), config, "device" + name);
    expect_same_end(here, "cpu" + name, there, "device" + name);
    EXPECT_FALSE(here.peak_device_bytes);
    // Weights, gradients and two moments in float32 at the least.
    EXPECT_GE(there.peak_device_bytes.value_or(0), 16 * there.num_parameters);
    std::vector<double> losses_here, losses_there;
    EXPECT_EQ(metric_lines("cpu" + name, &losses_here),
              metric_lines("device" + name, &losses_there));
    EXPECT_EQ(losses_here, losses_there);
  }
}

TEST_F(TrainingOnADevice, GoesOnWhereAnotherDeviceHasStopped) {
  const RunConfig config = kept_run();
  const RunRecord whole = run_on(at::kCPU, config, "whole");
  // The CPU until step 3, the other until step 7, the CPU to the end.
  copy_killed_after("whole", "moved", 3);
  const RunRecord moved = run_on(stand_in(), config, "moved", true);
  expect_same_end(whole, "whole", moved, "moved");
  copy_killed_after("moved", "back", 7);
  const RunRecord back = run_on(at::kCPU, config, "back", true);
  expect_same_end(whole, "whole", back, "back");
}

TEST_F(TrainingOnADevice, GoesBackToCheckpointsAndTakesUpdatesBack) {
  for (const char* remedy : {"roll_back", "skip"}) {
    // Every update is too large for float32.
    const RunConfig config =
        kept_run({"train.learning_rate=1e38", "train.weight_decay=100.0", "train.max_roll_backs=3",
                  "train.max_skips=3", std::string("train.on_nonfinite=") + remedy});
    const std::string name = remedy;
    const RunRecord here = run_on(at::kCPU, config, name + "-cpu");
    const RunRecord there = run_on(stand_in(), config, name + "-device");
    EXPECT_EQ(here.status, RunStatus::kDiverged);
    EXPECT_EQ(there.status, RunStatus::kDiverged);
    EXPECT_EQ(here.failure, there.failure);
    EXPECT_EQ(here.weights_hash, there.weights_hash);
  }
}

TEST_F(TrainingOnADevice, OfTwoRanksEndsWithTheBitsOfTheCpu) {
  const RunConfig config = kept_run({"train.clip_norm=0.5", "model.norm=batch"});
  SumsCounted counted;
  const auto run_two = [&](at::Device device, const std::string& name, const OpenBackend& open) {
    std::vector<RunRecord> records(2);
    on_ranks(
        2,
        [&](Ranks& ranks) {
          TrainOptions options;
          options.data_root = scratch_.file("data");
          options.device = device;
          options.quiet = true;
          records[static_cast<size_t>(ranks.rank())] =
              Trainer(prepare_run(config, folder(name), options, ranks), ranks).run();
        },
        open);
    EXPECT_EQ(records[0].weights_hash, records[1].weights_hash);
    return records[0];
  };
  const RunRecord here = run_two(at::kCPU, "cpu", counted.open());
  EXPECT_EQ(counted.sums, 0);
  expect_same_end(here, "cpu", run_two(stand_in(), "device", {}), "device");
  expect_same_end(here, "cpu", run_two(stand_in(), "there", counted.open()), "there");
  EXPECT_GE(counted.sums, 2 * config.train.steps);
  EXPECT_EQ(counted.aborts, 4);
}

TEST(RanksOnADevice, DoNotWaitThereForALostOne) {
  SumsCounted counted;
  const auto work = [](Ranks& ranks) {
    if (ranks.rank() == 1) return;
    const at::Tensor there = at::ones({10}, at::TensorOptions().device(stand_in()));
    ranks.begin_sum(there);
    ranks.begin_sum(at::ones({10}));
    EXPECT_THROW(ranks.wait(), LostRank);
  };
  on_ranks(2, work, counted.open());
  EXPECT_EQ(counted.waits, 0);
  EXPECT_EQ(counted.aborts, 2);
}

TEST(RanksOnADevice, AddUpInPlace) {
  const at::Tensor numbers = at::arange(1000, at::kFloat).add_(1).rsqrt_();
  on_ranks(2, [&](Ranks& ranks) {
    const at::Tensor own = numbers * static_cast<double>(ranks.rank() + 1);
    const at::Tensor x = own.to(stand_in()), y = own.clone();
    ranks.begin_sum(x);
    ranks.begin_sum(y);
    ranks.wait();
    EXPECT_EQ(x.device(), stand_in());
    EXPECT_TRUE(at::equal(x.cpu(), y));
  });
}

TEST(TensorMemoryOfADevice, IsCountedApart) {
  constexpr int64_t kMegabyte = 1 << 20;
  const TensorMemory there(stand_in());
  const at::Tensor x = at::empty({3 * kMegabyte}, at::TensorOptions(at::kByte).device(stand_in()));
  const at::Tensor host = at::empty({16 * kMegabyte}, at::kByte);
  EXPECT_EQ(there.peak_bytes(), 3 * kMegabyte);
}

}  // namespace
}  // namespace lra::training

// A prepared run: train, validate, save, test.
//
// Goals of the room `training`: the same bits after a resume, at any number of threads and on any
// rank; nothing lost when a run ends early. Non-goals: callbacks, other optimizers than the recipes
// need, models that exceed one machine.
#pragma once

#include <memory>
#include <string>

#include "io/progress.h"
#include "records/run_record.h"
#include "training/loop/batches.h"
#include "training/loop/evaluate.h"
#include "training/loop/run_checkpoints.h"
#include "training/loop/run_output.h"
#include "training/loop/step_guard.h"
#include "training/loop/stepper.h"
#include "training/ranks/agreement.h"

namespace lra::training {

class Trainer : private RunState {
 public:
  // Every rank makes a trainer of the same run; only the first writes files and logs.
  explicit Trainer(PreparedRun run, Ranks& ranks = one_rank());

  // Begins, or continues from the newest checkpoint that can be read; a run without one starts
  // over. Throws lra::Error for a run that does not fit into memory or onto the disk, and on resume
  // if data or task changed since it began, or if no checkpoint can be read.
  //
  // Runs to the end, to a stop signal (status kStopped) or to a loss, gradient or weight that is
  // not finite and that train.on_nonfinite cannot or may not pass (kDiverged). The record is on
  // disk when this returns. When a rank is lost, the first saves the weights of the last whole
  // step, the record says kStopped, and an lra::Error (74) is thrown.
  RunRecord run();

 private:
  // Does everything before the first step.
  void begin();
  void check_memory();
  void start();
  void resume();
  RunStatus train_and_test();
  // Each returns false when a stop was asked for; all throw Diverged.
  bool train(Progress& bar);
  bool validate(Progress& bar);
  bool test();
  bool is_over();
  void train_step(Progress& bar);
  // Applies the policy to a bad step.
  void recover(const std::string& fault, Progress& bar);
  void refuse_drift();
  RunRecord finish(RunStatus status, const std::string& failure = "");

  RunOutput output_;
  RunCheckpoints checkpoints_;
  Stepper stepper_;
  Agreement agreement_;
  StepProfiler profiler_;
  std::unique_ptr<BatchLoader> loader_;
  // The last evaluation of the test split, which may be the validation's.
  EvaluationResult tested_;
};

// The command that takes up a stopped run, for messages.
std::string go_on_command(const RunFolder& folder, at::Device device, int64_t num_ranks);

}  // namespace lra::training

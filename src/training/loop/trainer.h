// A prepared run: train, validate, save, test.
//
// Goals of the room `training`: the same bits after a resume, at any number of threads and on any
// rank; nothing lost when a run ends early. Non-goals: callbacks, other optimizers than the recipes
// need, models that exceed one machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/resources.h"
#include "io/progress.h"
#include "records/run_record.h"
#include "training/loop/batches.h"
#include "training/loop/evaluate.h"
#include "training/loop/metrics.h"
#include "training/loop/step_guard.h"
#include "training/loop/stepper.h"
#include "training/ranks/agreement.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/checkpoint.h"
#include "training/run/prepared_run.h"

namespace lra::training {

class Trainer : private PreparedRun {
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
  RunStatus train_and_test();
  void say(const std::string& text) const;
  void check_memory();
  void start();
  void resume();
  // Throws lra::Error if the run to resume had saved weights, none of which can be read:
  // `problems` says why.
  void refuse_lost_checkpoints(std::vector<std::string> problems);
  // Ends a run whose numbers are not finite.
  struct Diverged {
    std::string why;
  };
  // Each returns false when a stop was asked for; all throw Diverged.
  bool train(Progress& bar);
  bool validate(Progress& bar);
  bool test();
  void train_step(Progress& bar);
  // Applies the policy to a bad step.
  void recover(const std::string& fault, Progress& bar);
  // Weights and moments of the last scheduled checkpoint that can be read, or those of the
  // beginning; its step.
  int64_t roll_back(Progress& bar);
  // The step of the last checkpoint up to `step` that is sure to have been written; 0: none.
  int64_t last_checkpoint_until(int64_t step) const;
  // Loads the weights with the best validation whose checkpoint can be read, and returns their
  // step.
  int64_t load_best(Progress& bar);
  // Calls load(step) on all ranks with the first of `steps` whose checkpoint is not damaged, and
  // returns it; each damaged one becomes a warning of the record. The last of `steps` must load.
  int64_t load_readable(const std::vector<int64_t>& steps, const std::function<void(int64_t)>& load,
                        Progress& bar);
  void log_step(Progress& bar, double gradient_norm);
  void save(bool is_best);
  void save_last_step();
  RunRecord finish(RunStatus status, const std::string& failure = "");
  // Writes RUN/analysis/breakdown.json; nothing if the test has no prediction of every example.
  void write_breakdown() const;
  bool is_over();
  double seconds_so_far() const;
  void refuse_drift();
  void write_running_record();

  Ranks& ranks_;
  FlatParameters parameters_;
  // True if they are those of progress_: not while others are loaded, nor in the test.
  bool has_last_weights_ = true;
  CheckpointStore checkpoints_;
  TrainProgress progress_;
  Stepper stepper_;
  StepGuard guard_;
  Agreement agreement_;
  std::optional<MetricsLog> log_;  // on the first rank, from start() on
  StepProfiler profiler_;
  std::unique_ptr<BatchLoader> loader_;
  // The last evaluation of the test split, which may be the validation's.
  EvaluationResult tested_;
  double logged_seconds_ = 0;  // train_seconds at the last line of metrics
  int64_t logged_tokens_ = 0, logged_step_ = 0;
  double earlier_seconds_ = 0;  // total_seconds of the parts before a resume
  double started_ = 0;
  OtherPrograms others_;
};

// The command that takes up a stopped run, for messages.
std::string go_on_command(const RunFolder& folder, at::Device device);

}  // namespace lra::training

// The state of a run that trains, and what it says and writes: lines for people, record.json,
// metrics.jsonl with the TensorBoard events, and the breakdown of its test. Only the first rank
// writes files.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/resources.h"
#include "io/progress.h"
#include "training/loop/evaluate.h"
#include "training/loop/metrics.h"
#include "training/ranks/flat_parameters.h"
#include "training/run/prepared_run.h"
#include "training/settings/weights_file.h"

namespace lra::training {

struct RunState : PreparedRun {
  RunState(PreparedRun run, Ranks& ranks)
      : PreparedRun(std::move(run)), ranks(ranks), parameters(*model) {}

  Ranks& ranks;
  FlatParameters parameters;
  // True if the parameters are those of `progress`: not while others are loaded, nor in the test.
  bool has_last_weights = true;
  TrainProgress progress;
};

class RunOutput {
 public:
  explicit RunOutput(RunState& run) : run_(run) {}

  // Seconds that the run has taken, those before a resume included.
  double seconds() const { return earlier_seconds_ + watch_.seconds(); }
  // Prints a line unless the run is quiet.
  void say(const std::string& text) const;

  // Takes over curve, times and peaks of a resumed run's record, up to the checkpoint that it goes
  // on from.
  void resume();
  // Begins the log, or cuts that of a resumed run, at the step of the run.
  void open_log();
  // Null on other ranks than the first.
  MetricsLog* log() { return log_ ? &*log_ : nullptr; }

  // A line of metrics and the numbers beside the bar, of the steps since the last ones.
  void log_step(Progress& bar, double gradient_norm);
  // Writes the record as it is now, with what the progress says.
  void write_record();
  // Completes and writes the record, log and breakdown of a run that ends. `tested` is the last
  // evaluation of the test split.
  void finish(RunStatus status, const std::string& failure, const EvaluationResult& tested);

 private:
  // Writes RUN/analysis/breakdown.json; nothing if the test has no prediction of every example.
  void write_breakdown(const EvaluationResult& tested) const;

  RunState& run_;
  std::optional<MetricsLog> log_;  // on the first rank, from open_log() on
  struct {
    double seconds = 0;
    int64_t tokens = 0, step = 0;
  } logged_;                    // what was trained until the last line of metrics
  double earlier_seconds_ = 0;  // total_seconds of the parts before a resume
  Stopwatch watch_;
  OtherPrograms others_;
};

}  // namespace lra::training

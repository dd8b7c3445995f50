// The checkpoints of a run that trains: when one is saved, and which one is loaded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/progress.h"
#include "training/loop/run_output.h"
#include "training/run/checkpoint.h"

namespace lra::training {

// Ends a run whose numbers are not finite.
struct Diverged {
  std::string why;
};

// Every rank loads; only the first saves.
class RunCheckpoints {
 public:
  RunCheckpoints(RunState& run, RunOutput& output);

  // Saves the trained weights that a new run begins with, if it does.
  void save_first();
  // Loads the newest checkpoint of a resumed run that can be read; each damaged one becomes a
  // warning of the record. Puts the links right and removes what a killed run left behind. False if
  // nothing had been saved. Throws lra::Error if what was saved cannot be read, is of an earlier
  // version or contradicts the record, and if there is no room for more.
  bool resume();

  // Throws Diverged for weights that are not finite.
  void save(bool is_best);
  // Saves the weights of the last whole step of a run that ends early, if they are in memory.
  void save_last_step();

  // Loads weights and moments of the last scheduled checkpoint that can be read, or those of the
  // beginning; returns its step.
  int64_t roll_back(Progress& bar);
  // Loads the weights with the best validation whose checkpoint can be read, and returns their
  // step.
  int64_t load_best(Progress& bar);

 private:
  // Throws lra::Error if the run to resume had saved weights, none of which can be read:
  // `problems` says why.
  void refuse_lost(std::vector<std::string> problems) const;
  // The step of the last checkpoint up to `step` that is sure to have been written; 0: none.
  int64_t last_until(int64_t step) const;
  // Calls load(step) on all ranks with the first of `steps` whose checkpoint is not damaged, and
  // returns it; each damaged one becomes a warning of the record. The last of `steps` must load.
  int64_t load_readable(const std::vector<int64_t>& steps, const std::function<void(int64_t)>& load,
                        Progress& bar);

  RunState& run_;
  RunOutput& output_;
  CheckpointStore store_;
};

}  // namespace lra::training

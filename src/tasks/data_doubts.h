// Doubts whether the data that a run reads is the data that its user meant.
#pragma once

#include <string>
#include <vector>

#include "tasks/task.h"

namespace lra::tasks {

// Reasons to doubt the examples of imported data, one sentence each: those of judge_data() that the
// import stored, or its answer now, and those of the task with these settings.
// Empty for generated data.
std::vector<std::string> doubts_of_contents(const Task& task, const Dataset& dataset);

// A sentence for each baseline that is right on nearly all of the test split, which has `num_test`
// examples: something gives the labels away; or on fewer than chance gives: the labels of the test
// are exchanged or shifted. Empty when that is too few to tell.
std::vector<std::string> doubts_of_baselines(const std::vector<checks::Baseline>& baselines,
                                             int64_t num_classes, int64_t num_test);

// True if so many examples are right less often than by chance, by 3.5 standard errors.
bool is_below_chance(double accuracy, int64_t num_classes, int64_t num_examples);

// doubts_of_contents(), and those of these baselines of the task. A sentence that the import stored
// is not repeated.
std::vector<std::string> doubts_with_baselines(const Task& task, const Dataset& dataset,
                                               const std::vector<checks::Baseline>& baselines);

// A baseline that sees the input, and its accuracy on published data, 0..1. Splits with fewer
// examples are not judged by it.
struct KnownBaseline {
  checks::Baseline found;
  double published, least;
  int64_t fewest_train = 5000, fewest_test = 1000;
};

// A sentence if a baseline is right on less of the test split than the least that data of the task
// gives, by more than chance: its labels are shuffled or partly wrong. `train` and `test` are the
// splits that it saw.
std::vector<std::string> doubts_of_labels(const KnownBaseline& baseline, const Split& train,
                                          const Split& test);

// Reasons to doubt that `dataset`, which prepare_data() has found under `root`, is the intended
// data, one sentence each; empty if there are none. For generated data: files under the root that
// could have been meant. For imported data: raw files that are newer than the prepared data, other
// copies of them, and doubts_of_contents().
std::vector<std::string> data_doubts(const TaskSpec& spec, const Task& task,
                                     const std::string& root, const Dataset& dataset);

// Standard error of the difference of two shares, of so many examples each, if both are of the
// same.
double error_of_difference(double share, int64_t count, double other, int64_t other_count);

}  // namespace lra::tasks

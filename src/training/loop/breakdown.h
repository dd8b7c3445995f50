// Where a model fails: its accuracy by class, by length and by what the task knows of an example;
// metrics and weights for classes of uneven size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "records/analysis_record.h"
#include "tasks/task.h"
#include "training/loop/evaluate.h"
#include "training/settings/run_config.h"

namespace lra::training {

// Mean of the F1 scores (harmonic mean of precision and recall) over the classes that are labels
// or predictions, from [label][prediction] counts: scikit-learn's f1_score(average="macro").
double macro_f1(const std::vector<std::vector<int64_t>>& confusion);

// Area under the ROC curve: the share of pairs of an example of class 0 and one of class 1 in
// which the latter has the higher probability of class 1; ties count half. `predictions` are those
// of `split`. Nothing unless there are two classes with examples of both and a finite loss.
std::optional<double> area_under_roc(const EvaluationResult& result, const Split& split);

// [num_classes], float32: the number of examples divided by that of the class and the number of
// classes with examples, so that every class counts alike and the mean over the examples is 1;
// scikit-learn's class_weight="balanced". 1 for a class without examples.
at::Tensor balanced_weights(const Split& split, int64_t num_classes);

// The lengths of a split's examples, named "length", and what the task knows of them. Lengths are
// those of the stored sequences, before they are cut, of both documents together.
std::vector<tasks::ExampleProperty> properties_of(const RunConfig& config, const tasks::Task& task,
                                                  const Dataset& dataset, const std::string& split);

// `result` is of all examples of `split`, with predictions. Numbers with more than ten values are
// joined into at most eight ranges of about as many examples.
BreakdownResult breakdown_of(const EvaluationResult& result, const RunConfig& config,
                             const tasks::Task& task, const Dataset& dataset,
                             const std::string& split);

}  // namespace lra::training

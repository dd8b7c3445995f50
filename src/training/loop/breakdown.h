// Where a model fails: its accuracy by class, by length and by what the task knows of an example.
#pragma once

#include <string>
#include <vector>

#include "records/analysis_record.h"
#include "tasks/task.h"
#include "training/loop/evaluate.h"
#include "training/settings/run_config.h"

namespace lra::training {

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

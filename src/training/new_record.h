// The record of a run that is about to begin.
#pragma once

#include "records/run_record.h"
#include "tasks/task.h"
#include "training/run_config.h"

namespace lra::training {

// Everything that is known before the first step, the fingerprint among it.
RunRecord new_record(const RunConfig& config, const tasks::Task& task,
                     const tasks::Dataset& dataset, const Provenance& provenance);

}  // namespace lra::training

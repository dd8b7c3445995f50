// A run on one page, in the form of a model card: Markdown under a YAML head.
#pragma once

#include <string>

#include "records/run_record.h"

namespace lra::report {

// The head holds what model cards hold (language of tags, model-index with task, data and metric),
// the text the result, its protocol and provenance, and the settings. `run` is a training run.
std::string results_card(const RunRecord& run);

// A file name for it: "performer-text-seed0-0123abcd.md", of letters, digits, - and _ alone.
std::string card_name(const RunRecord& run);

}  // namespace lra::report

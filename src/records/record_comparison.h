// Compares two records of the same run: results bit for bit, and where they were made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lra {

struct Compared {
  std::string what;           // "weights", "validation at step 200"
  std::string recorded, now;  // as text; equal exactly if the values are
  bool is_equal() const { return recorded == now; }
};

// Status, steps, examples and tokens, the hash of the weights, every validation, the best one and
// the test. Numbers are written with enough digits to distinguish any two.
std::vector<Compared> compare_results(const RunRecord& recorded, const RunRecord& now);

// Compares two runs of the same settings up to `step`: every validation, and the training steps in
// their metrics.jsonl (all that `recorded_log` has; speeds aside) as one row, which shows the first
// difference or the last step. Empty if nothing was recorded until then.
std::vector<Compared> compare_beginnings(const RunRecord& recorded, const RunRecord& now,
                                         std::string_view recorded_log, std::string_view log,
                                         int64_t step);

// Properties of program and machine that may change bits: version and revision, compiler, torch,
// processor, instruction set, device, threads, kernels.
std::vector<Compared> compare_circumstances(const Provenance& recorded, const Provenance& now);

}  // namespace lra

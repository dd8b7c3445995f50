// Speed and memory: of training runs and of efficiency measurements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/run_record.h"

namespace lra::report {

// Training speed of the finished runs of a cell, evaluation and saving not counted.
struct CellSpeed {
  std::optional<double> tokens_per_s, steps_per_s;  // means over runs
  // tokens_per_s over the Transformer's on the same task, preset, machine and revision.
  std::optional<double> relative;
  std::optional<int64_t> peak_resident_bytes;  // the largest
};

// One efficiency measurement.
struct SpeedRow {
  std::string task, model, title, machine;
  Measurement measured;
  std::optional<double> relative;        // steps per second over the Transformer's, like for like
  std::optional<double> paper_relative;  // computed from the paper's Table 2 or 4
};

// "AMD EPYC 9965, 2 threads, cpu, avx512": what has to be equal for two speeds to compare.
std::string machine_of(const Provenance& provenance);
// The first ten digits of the git revision, with "+changes" for a dirty tree.
std::string revision_of(const Provenance& provenance);

// `runs` are those of one cell; the Transformer's are looked for in `all`.
CellSpeed cell_speed(const std::vector<const RunRecord*>& runs, const std::vector<RunRecord>& all);

// Every measurement of every record; of repeated ones the latest. Ordered by task, mode, number
// format, length, machine, then fastest first.
std::vector<SpeedRow> speed_rows(const std::vector<RunRecord>& records);

}  // namespace lra::report

// Speed and memory: of training runs and of efficiency measurements.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

using Runs = std::vector<const RunRecord*>;

// Training speed of the finished runs of a cell, evaluation and saving not counted.
struct CellSpeed {
  std::optional<double> tokens_per_s, steps_per_s;  // means over runs
  // tokens_per_s over the Transformer's with the same task settings, sizes and batches, on the same
  // machine and revision.
  std::optional<double> relative;
  std::optional<int64_t> peak_memory_bytes;  // the largest
};

// One efficiency measurement.
struct SpeedRow {
  std::string task, model, title, preset;
  std::string settings;  // its differences from others of this model and preset; often empty
  std::string machine, revision;
  std::string device;  // the machine's name for people
  Measurement measured;
  std::optional<double> relative = {};  // steps per second over the Transformer's, like for like
  std::optional<double> paper_relative = {};  // computed from the paper's Table 2 or 4
};

// `runs` are those of one cell; the Transformer's are looked for in `all`.
CellSpeed cell_speed(const Runs& runs, const std::vector<RunRecord>& all);

// Every measurement of every record; of repeated ones, with the same settings, the latest. Ordered
// by task, preset, mode, number format, length, batch, machine, then fastest first. Measurements
// compare where everything but the model and its mixer's settings is the same.
std::vector<SpeedRow> speed_rows(const std::vector<RunRecord>& records);

struct SpeedGridLine {
  std::string model, title;  // title: with the settings that set it apart
  std::map<int64_t, const SpeedRow*> at;

  // Null for a length that was not measured.
  const SpeedRow* find(int64_t length) const {
    const auto found = at.find(length);
    return found == at.end() ? nullptr : found->second;
  }
};

// Measurements that compare: only model and length differ.
struct SpeedGrid {
  const SpeedRow* any = nullptr;  // one of them: its settings and machine are those of all
  std::set<int64_t> lengths;
  std::vector<SpeedGridLine> lines;  // the paper's order of models, then by title

  std::string setting() const;  // "text, small, fp32, batch 32, revision ..., machine"
  std::string name() const;     // "AMD EPYC, 2 threads, fp32, batch 32"
  // Returns null for a length or model that was not measured. Takes the model's own settings if it
  // has several: those without a label.
  const SpeedRow* find(std::string_view model, int64_t length) const;
};

// One for each task, preset, mode, number format, batch, revision and machine. `rows` must outlive
// them.
std::vector<SpeedGrid> speed_grids(const std::vector<SpeedRow>& rows);

// The grid of byte-level text that says most about the paper's table ("train": 2, "infer": 4): that
// with most figures of the paper's models and lengths whose ratio to the Transformer is known. Null
// when none has one.
const SpeedGrid* paper_grid(const std::vector<SpeedGrid>& grids, std::string_view mode);

}  // namespace lra::report

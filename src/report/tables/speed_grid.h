// Measurements in the layout of the paper's Tables 2 and 4: models down, lengths across.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/tables/speed.h"

namespace lra::report {

struct SpeedGridLine {
  std::string model, title;  // title: with the settings that set it apart
  std::map<int64_t, const SpeedRow*> at;
};

// Measurements that compare: only model and length differ.
struct SpeedGrid {
  std::string task, preset, mode, dtype, revision, machine;
  std::string device;  // the machine's name for people
  int64_t batch = 0;
  std::vector<int64_t> lengths;      // ascending
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

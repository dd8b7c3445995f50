// The figures by which claims about models are judged, with one interface for the paper's own and
// those of our records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "report/formats/formats.h"
#include "report/tables/paper_tables.h"

namespace lra::report {

struct Measured {
  double value = 0;
  double noise = 0;  // two values differ when they are further apart than both noises, squared and
                     // added, make up
};
using Finding = std::optional<Measured>;  // nothing: not measured

// Models by the paper's names, see paper_models().
struct Evidence {
  std::function<Finding(std::string_view model)> average;  // of the five tasks, percent
  std::function<Finding(std::string_view model, PaperTask task)> accuracy;  // percent
  // Steps per second over the Transformer's, byte-level text; mode "train" or "infer".
  std::function<Finding(std::string_view model, std::string_view mode, int64_t length)> speed;
  std::function<Finding(std::string_view model, int64_t length)> memory;  // training, GB
  std::function<Finding(std::string_view model)> gap;          // Image: train less test, percent
  std::function<Finding(std::string_view model)> steps_to_35;  // Image; infinite: never
  std::function<Finding(PaperTask task)> span;  // of the Transformer, as a part of the length
  std::function<Finding()> gray_correlation;    // of similarity and distance of two grays
  // Similarity of positions one pixel apart in a column less that of such in a row.
  std::function<Finding()> vertical_lead;
};

// The tables of the paper, version 0. A missing figure is nullopt.
Evidence paper_evidence();

// Evidence from runs of the whole budget with the preset, and from measurements that compare.
// `input` must outlive it.
Evidence full_evidence(const ReportInput& input, std::string preset);

// Evidence from any run: shortened runs, any preset, the highest figure of each model. It decides
// nothing.
Evidence weak_evidence(const ReportInput& input);

}  // namespace lra::report

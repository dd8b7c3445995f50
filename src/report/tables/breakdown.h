// Where models fail: their accuracy by class, by length and by what the task knows of an example.
#pragma once

#include <string>
#include <vector>

#include "report/tables/tables.h"

namespace lra::report {

// An accuracy in percent with its 95 % interval; no examples: none.
struct BreakdownPoint {
  double accuracy = 0, half_width = 0;
  int64_t num_examples = 0;
};

// The breakdowns of one set of examples by one property.
struct BreakdownGrid {
  std::string title;                // "ListOps, test: accuracy by depth"
  std::vector<std::string> groups;  // names of the values, in their order
  bool is_ordered = false;          // numbers
  struct Run {
    std::string model, label;  // label: with the seed, if several runs of the model are here
    std::vector<BreakdownPoint> points;
  };
  std::vector<Run> runs;
};

// Each task and property, the classes (whose accuracy is the recall) first.
std::vector<BreakdownGrid> breakdown_grids(const std::vector<Analysis>& analyses);
Table breakdown_table(const BreakdownGrid& grid);
// Macro F1, AUC, and recall and precision of each class.
Table class_table(const std::vector<Analysis>& analyses);

}  // namespace lra::report

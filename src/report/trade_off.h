// The paper's Figure 3: quality against speed and against memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/formats.h"
#include "report/tables.h"

namespace lra::report {

struct TradeOffPoint {
  std::string title;
  double quality = 0;  // percent
  double speed = 0;    // training steps per second over the Transformer's
  std::optional<double> memory_gb = {}, examples_per_s = {};
  // No other point is as good in quality and speed, or in quality and memory, and better in one.
  bool on_speed_front = false, on_memory_front = false;
};

struct TradeOff {
  std::string title, caption, quality_name;
  std::vector<TradeOffPoint> points;  // the paper's order of models; may be empty
};

// Our figures: the greatest length at which most models were measured, and the first of these
// qualities that two models have: the average of five; that of all tasks shown; that of all tasks
// shown with shortened runs; the accuracy on one task with one preset and part of the budget, those
// that most models have. The caption says which. A model's best row counts.
TradeOff our_trade_off(const ReportInput& input);

// The averages of version 0 and the 4K columns of Table 2.
TradeOff paper_trade_off();

// A point without memory is on no front of memory.
void mark_fronts(std::vector<TradeOffPoint>& points);

Table trade_off_table(const TradeOff& trade_off);

}  // namespace lra::report

// The paper's Figure 3: quality against speed and against memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/tables/tables.h"

namespace lra::report {

struct TradeOffPoint {
  std::string title;
  double quality = 0;  // percent
  double speed = 0;    // over the Transformer's, or tokens per second: TradeOff::is_ratio
  std::optional<double> memory_gb = {}, examples_per_s = {};
  // No other point is as good in quality and speed, or in quality and memory, and better in one.
  bool on_speed_front = false, on_memory_front = false;
};

struct TradeOff {
  std::string title, caption = {}, quality_name = {};
  bool is_ratio = true;
  bool is_average = false;                 // quality is an average over tasks
  std::vector<TradeOffPoint> points = {};  // the paper's order of models; may be empty
};

// Our figures: the greatest length at which most models were measured, and the first of these
// qualities that two models have: the average of five; that of all tasks shown; the accuracy on one
// task in one setting and budget, those that most models have. The caption says which. A model's
// best row counts.
TradeOff our_trade_off(const ReportInput& input);

// The accuracy on one task, chosen as above, and the training speed that the runs logged, in tokens
// per second, of the device that computed most of them. No points where fewer than two rows have
// both.
TradeOff training_trade_off(const Leaderboard& board);

// The averages of version 0 and the 4K columns of Table 2.
TradeOff paper_trade_off();

// A point without memory is on no front of memory.
void mark_fronts(std::vector<TradeOffPoint>& points);

// "1.25x" or "12,345 tokens/s".
std::string speed_text(const TradeOff& trade_off, const TradeOffPoint& point);
Table trade_off_table(const TradeOff& trade_off);

}  // namespace lra::report

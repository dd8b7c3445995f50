#include "report/tables/trade_off.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text_format.h"

namespace lra::report {
namespace {

struct Quality {
  std::string name, remark;
  std::function<std::optional<double>(const Row& row)> of;
  bool is_average = true;
};

// Accuracies that compare: of one task, setting and budget.
struct OneTask {
  size_t column = 0;
  std::string setting;
  std::set<int64_t> steps;  // empty for full runs
  auto operator<=>(const OneTask&) const = default;
};

OneTask key_of(size_t column, const Cell& cell) {
  return {column, cell.setting, cell.shortfall.empty() ? std::set<int64_t>{} : cell.steps};
}

// The accuracies that most models share; the first of equals; nothing without accuracies. Short
// runs count only where there are no full ones.
std::optional<OneTask> most_shared_task(const Leaderboard& board) {
  const bool only_full =
      any_cell(board, [](const Cell& cell) { return cell.full_accuracy().has_value(); });
  std::map<OneTask, std::set<std::string>> models;
  for (const Row& row : board.rows) {
    if (row.is_self_pretrained) continue;
    for (size_t column = 0; column < row.cells.size(); ++column) {
      const Cell& cell = row.cells[column];
      if (only_full && !cell.full_accuracy()) continue;
      if (cell.shown_accuracy()) models[key_of(column, cell)].insert(row.model);
    }
  }
  const auto widest =
      std::ranges::max_element(models, {}, [](const auto& entry) { return entry.second.size(); });
  if (widest == models.end()) return std::nullopt;
  return widest->first;
}

Quality quality_of_one(const OneTask& task, const Leaderboard& board) {
  std::string part;
  for (const int64_t steps : task.steps) part += ", " + thousands(steps) + " steps";
  return {"accuracy on " + board.columns[task.column].title + ", %",
          " Not the paper's average: only one task" + part + ".",
          [task](const Row& row) {
            const Cell& cell = row.cells[task.column];
            return key_of(task.column, cell) == task ? cell.shown_accuracy() : std::nullopt;
          },
          false};
}

// The length at which most models have a ratio to the Transformer; the greatest of equals.
int64_t widest_length(const SpeedGrid& grid) {
  std::map<int64_t, int> counts;
  for (const SpeedGridLine& line : grid.lines) {
    for (const auto& [length, row] : line.at) counts[length] += row->relative.has_value();
  }
  std::pair<int, int64_t> widest;
  for (const auto& [length, count] : counts) widest = std::max(widest, {count, length});
  return widest.second;
}

// Nothing for 0 bytes, which means unknown.
std::optional<double> gigabytes(int64_t bytes) {
  return bytes > 0 ? std::optional(static_cast<double>(bytes) / 1e9) : std::nullopt;
}

std::vector<TradeOffPoint> points_of(const ReportInput& input, const SpeedGrid& grid,
                                     int64_t length, const Quality& quality) {
  std::vector<TradeOffPoint> points;
  for (const SpeedGridLine& line : grid.lines) {
    const SpeedRow* speed = line.find(length);
    if (!speed || !speed->relative) continue;
    if (speed != grid.find(line.model, length)) continue;  // another of the model has its point
    std::optional<double> best;
    for (const Row& row : input.board.rows) {
      if (row.model != line.model || row.is_self_pretrained) continue;
      const auto value = quality.of(row);
      if (value && (!best || *value > *best)) best = value;
    }
    if (!best) continue;
    points.push_back({line.title, *best, *speed->relative,
                      gigabytes(speed->measured.peak_tensor_bytes),
                      speed->measured.steps_per_s * static_cast<double>(grid.any->measured.batch)});
  }
  return points;
}

// A sentence that names the models without a point; empty if there are none.
std::string left_out_text(const Leaderboard& board, const std::vector<TradeOffPoint>& points) {
  std::set<std::string> titles;
  for (const Row& row : board.rows) {
    const auto is_of_row = [&](const TradeOffPoint& p) { return p.title.starts_with(row.title); };
    if (std::ranges::none_of(points, is_of_row)) titles.insert(row.title);
  }
  if (titles.empty()) return "";
  return " Not shown, for lack of such an accuracy or speed: " +
         joined({titles.begin(), titles.end()}) + ".";
}

}  // namespace

void mark_fronts(std::vector<TradeOffPoint>& points) {
  // `saves` returns the value to maximize; nullopt for a point that does not compare.
  const auto on_front = [&](const TradeOffPoint& point, auto saves) {
    const std::optional<double> own = saves(point);
    return own && std::none_of(points.begin(), points.end(), [&](const TradeOffPoint& other) {
             const std::optional<double> its = saves(other);
             return its && other.quality >= point.quality && *its >= *own &&
                    (other.quality > point.quality || *its > *own);
           });
  };
  for (TradeOffPoint& point : points) {
    point.on_speed_front =
        on_front(point, [](const TradeOffPoint& p) { return std::optional<double>(p.speed); });
    point.on_memory_front = on_front(point, [](const TradeOffPoint& p) {
      return p.memory_gb ? std::optional<double>(-*p.memory_gb) : std::nullopt;
    });
  }
}

TradeOff our_trade_off(const ReportInput& input) {
  std::vector<Quality> qualities = {
      {"average of five, %", "", [](const Row& row) { return row.scored.ours; }},
      {"average of the tasks shown, %", " Not the paper's average: tasks are missing.",
       [](const Row& row) { return row.present.ours; }}};
  if (const auto task = most_shared_task(input.board)) {
    qualities.push_back(quality_of_one(*task, input.board));
  }
  TradeOff result{.title = "Figure 3: quality, speed and memory, ours"};
  const SpeedGrid* grid = paper_grid(input.grids, "train");
  if (!grid) return result;
  const int64_t length = widest_length(*grid);
  for (const Quality& quality : qualities) {
    std::vector<TradeOffPoint> points = points_of(input, *grid, length, quality);
    if (points.size() < 2) continue;
    result.quality_name = quality.name;
    result.is_average = quality.is_average;
    result.caption = "Training speed at " + thousands(length) + " tokens, measured on " +
                     grid->setting() + "; memory is the peak of tensors." + quality.remark +
                     left_out_text(input.board, points);
    mark_fronts(points);
    result.points = std::move(points);
    break;
  }
  return result;
}

TradeOff training_trade_off(const Leaderboard& board) {
  TradeOff result{.title = "Quality and training speed",
                  .caption = "Speed and peak memory as the training runs logged them.",
                  .is_ratio = false};
  const std::optional<OneTask> task = most_shared_task(board);
  if (!task) return result;
  const Quality quality = quality_of_one(*task, board);
  result.quality_name = quality.name;
  const auto cell_of = [&](const Row& row) -> const Cell& { return row.cells[task->column]; };
  const auto is_point = [&](const Row& row) {
    return quality.of(row) && cell_of(row).speed.tokens_per_s && !row.is_self_pretrained;
  };
  std::map<std::string, int> devices;
  for (const Row& row : board.rows) devices[cell_of(row).devices] += is_point(row);
  const auto commonest =
      std::ranges::max_element(devices, {}, [](const auto& entry) { return entry.second; });
  result.caption += " Computed by: " + commonest->first + ".";
  for (const Row& row : board.rows) {
    const Cell& cell = cell_of(row);
    if (!is_point(row) || cell.devices != commonest->first) continue;
    result.points.push_back({row_label(board, row, cell.settings), *quality.of(row),
                             *cell.speed.tokens_per_s,
                             gigabytes(cell.speed.peak_memory_bytes.value_or(0))});
  }
  if (result.points.size() < 2) result.points.clear();
  result.caption += left_out_text(board, result.points);
  mark_fronts(result.points);
  return result;
}

TradeOff paper_trade_off() {
  TradeOff result{.title = "Figure 3: quality, speed and memory, the paper's",
                  .caption =
                      "Averages of Table 1, computed from its rows; speed and memory of Table 2 at "
                      "4K. The paper names BigBird and Performer as its front.",
                  .quality_name = "average of five, %"};
  constexpr size_t kLast = kPaperLengths.size() - 1;
  for (const PaperModel& model : paper_models()) {
    if (!model.speeds) continue;
    result.points.push_back({std::string(model.label), paper_average(model, PaperVersion::kV0),
                             *paper_relative_speed(model.name, "train", kPaperLengths[kLast]),
                             model.speeds->memory_gb[kLast],
                             model.speeds->train_steps_per_s[kLast] * kPaperBatch});
  }
  mark_fronts(result.points);
  const auto front = mapped(result.points, [](const TradeOffPoint& point) {
    return point.on_speed_front ? point.title : "";
  });
  result.caption += " By its own tables these lie on that of speed: " + joined(front) + ".";
  return result;
}

std::string speed_text(const TradeOff& trade_off, const TradeOffPoint& point) {
  return trade_off.is_ratio ? ratio_text(point.speed) : rate_text(point.speed) + " tokens/s";
}

Table trade_off_table(const TradeOff& trade_off) {
  Table table{.title = trade_off.title, .caption = trade_off.caption};
  for (const TradeOffPoint& point : trade_off.points) {
    table.add({{"Model", {point.title}},
               {trade_off.quality_name, {accuracy_text(point.quality)}},
               {trade_off.is_ratio ? "speed" : "tokens/s", {speed_text(trade_off, point)}},
               {"examples/s", {rate_text(point.examples_per_s)}},
               {"memory", {gigabytes_text(point.memory_gb)}},
               {"Pareto front of speed", {point.on_speed_front ? "yes" : "no"}},
               {"of memory", {point.on_memory_front ? "yes" : "no"}}});
  }
  return table;
}

}  // namespace lra::report

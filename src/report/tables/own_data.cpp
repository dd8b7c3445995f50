// A user's own data and diagnostic tasks, which have no published figures and no part in averages.
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// "reviews" of "custom:reviews".
std::string data_name(const TaskColumn& column) {
  const size_t colon = column.task.find(':');
  return colon == std::string::npos ? column.title : column.task.substr(colon + 1);
}

Cells line_of(const Leaderboard& own, size_t column, const Row& row) {
  const Cell& cell = row.cells[column];
  const Trivial& trivial = cell.trivial;
  return {{data_name(own.columns[column])},
          {row.title},
          {or_dash(cell.settings)},
          {figure_text(cell), rank_in_column(own, row, column), cell.marks},
          {or_dash(interval_text(cell))},
          {trivial.name.empty() ? "-" : accuracy_text(trivial.accuracy) + " " + trivial.name,
           Emphasis::kQuiet},
          {joined({std::to_string(cell.accuracy.count), lost_text(cell)})},
          {size_text(cell.num_parameters)},
          {time_text(cell.train_seconds)},
          {rate_text(cell.speed.tokens_per_s)},
          {memory_text(cell.speed.peak_memory_bytes)},
          {row.preset},
          {row.checkpoint},
          {cell.validation},
          {cell.division}};
}

}  // namespace

Table own_data_table(const Leaderboard& own) {
  Table table{
      .title = "Outside of the arena: test accuracy, percent",
      .caption = joined({"Rows compare only within one data set and budget. 95 %: half-width of "
                         "the 95 % interval, over seeds or over test examples, whichever is wider. "
                         "Training time is of one run, only its training steps.",
                         marks_legend(own)},
                        " "),
      .header = {"Data", "Model", "Settings", "Accuracy", "95 %", "Trivial baseline", "Seeds",
                 "Parameters", "Training time", "tokens/s", "Peak memory", "Preset",
                 "Tested weights", "Validation", "Division"},
      .num_left = 3,
      .num_keys = 2,
      .is_list = true};
  std::vector<std::string> marks;
  for (size_t i = 0; i < own.columns.size(); ++i) {
    for (const Row& row : own.rows) {
      if (!row.cells[i].was_run()) continue;
      table.rows.push_back(line_of(own, i, row));
      marks.push_back(texts_of(row.cells[i].marks));
    }
  }
  add_marks(table, std::move(marks));
  for (const char* title : {"Settings", "Preset", "Tested weights", "Validation", "Division"}) {
    fold_column(table, title);
  }
  return table;
}

}  // namespace lra::report

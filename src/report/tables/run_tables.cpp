// The tables of runs and measurements beside the accuracies: the best of each task, own data,
// protocols, speed and memory, pretraining.
#include <tuple>

#include "base/text_format.h"
#include "records/find_setting.h"
#include "report/tables/tables.h"

namespace lra::report {
namespace {

// The row with the highest figure of a column: on the paper's task, else on a changed one, and of
// full runs, else of short ones that are ranked, else of all; null if there is none.
const Row* best_row(const Leaderboard& board, size_t column) {
  const Row* best = nullptr;
  const auto score = [&](const Row& row) {
    const Cell& cell = row.cells[column];
    const bool is_full = cell.full_accuracy() && !cell.fail;
    const bool is_best = rank_in_column(board, row, column) == Emphasis::kBest;
    return std::tuple(cell.task_changes.empty(), is_full, is_best, *cell.shown_accuracy());
  };
  for (const Row& row : board.rows) {
    if (row.is_self_pretrained || !row.cells[column].shown_accuracy()) continue;
    if (!best || score(row) > score(*best)) best = &row;
  }
  return best;
}

Cells best_line(const Leaderboard& board, size_t column) {
  const std::string& title = board.columns[column].title;
  const Row* best = best_row(board, column);
  if (!best) {
    return {{title}, {"no figure", Emphasis::kQuiet}, {"-"}, {"-"}, {"-"}, {"-"}, {"-"}, {"-"}};
  }
  const Cell& cell = best->cells[column];
  const TableCell trivial = {cell.trivial.name.empty() ? "-" : fixed(cell.trivial.accuracy, 2),
                             Emphasis::kQuiet};
  const bool is_trivial = cell.has(MarkKind::kTrivial);
  const bool is_best =
      cell.full_accuracy() || rank_in_column(board, *best, column) == Emphasis::kBest;
  const std::string interval = cell.interval ? " ± " + fixed(*cell.interval, 2) : "";
  return {
      {joined({title, cell.task_changes})},
      {is_trivial ? "none above trivial; highest: " + best->title : best->title,
       is_trivial || !is_best ? Emphasis::kQuiet : Emphasis::kBest},
      {figure_text(cell) + interval, is_trivial ? Emphasis::kQuiet : Emphasis::kPlain, cell.marks},
      trivial,
      {size_text(cell.num_parameters)},
      {time_text(cell.train_seconds)},
      {memory_text(cell.speed.peak_memory_bytes)},
      {or_dash(cell.devices)}};
}

// "reviews" of "custom:reviews".
std::string data_name(const TaskColumn& column) {
  const size_t colon = column.task.find(':');
  return colon == std::string::npos ? column.title : column.task.substr(colon + 1);
}

TitledCells own_data_line(const Leaderboard& own, size_t column, const Row& row) {
  const Cell& cell = row.cells[column];
  const auto& [accuracy, name] = cell.trivial;
  const std::string trivial = name.empty() ? "-" : accuracy_text(accuracy) + " " + name;
  return {{"Data", {data_name(own.columns[column])}},
          {"Model", {row.title}},
          {"Settings", {or_dash(cell.settings)}},
          {"Accuracy", {figure_text(cell), rank_in_column(own, row, column), cell.marks}},
          {"95 %", {or_dash(interval_text(cell))}},
          {"Trivial baseline", {trivial, Emphasis::kQuiet}},
          {"Seeds", {joined({std::to_string(cell.accuracy.count), lost_text(cell)})}},
          {"Parameters", {size_text(cell.num_parameters)}},
          {"Training time", {time_text(cell.train_seconds)}},
          {"tokens/s", {rate_text(cell.speed.tokens_per_s)}},
          {"Peak memory", {memory_text(cell.speed.peak_memory_bytes)}},
          {"Preset", {row.preset}},
          {"Tested weights", {row.checkpoint}},
          {"Validation", {cell.validation}},
          {"Division", {cell.division}}};
}

TitledCells measurement_line(const SpeedRow& row) {
  const Measurement& m = row.measured;
  const std::string range =
      " [" + rate_text(m.slowest_steps_per_s) + ".." + rate_text(m.fastest_steps_per_s) + "]";
  return {{"Task", {row.task}},
          {"Model", {row.title}},
          {"Preset", {row.preset}},
          {"Settings", {or_dash(row.settings)}},
          {"mode", {m.mode}},
          {"dtype", {m.dtype}},
          {"length", {thousands(m.length)}},
          {"batch", {thousands(m.batch)}},
          {"steps/s",
           {rate_text(m.steps_per_s) + (m.parts ? "*" : "") + (m.warning ? "!" : "") +
            (m.windows > 1 ? range : "")}},
          {"with data", {rate_text(m.pipeline_steps_per_s)}},
          {"tokens/s", {rate_text(m.tokens_per_s)}},
          {"of GEMM", {fixed(100 * flops_utilisation(m), 1) + " %"}},
          {"relative", {ratio_text(row.relative)}},
          {"paper", {ratio_text(row.paper_relative)}},
          {"peak memory", {memory_text(m.peak_resident_bytes)}},
          {"Revision", {row.revision}},
          {"Machine", {row.machine}}};
}

}  // namespace

Table best_table(const Leaderboard& board) {
  Table table{
      .title = "Best of each task",
      .caption =
          "By test accuracy in percent, ± its 95 % interval, of full runs if there are any; the "
          "cost is that of one run. Trivial: the best classifier that needs no model.",
      .header = {"Task", "Model", "Accuracy", "Trivial", "Parameters", "Training time",
                 "Peak memory", "Computed by"},
      .num_left = 2,
      .is_list = true};
  if (board.rows.size() < 2) return table;
  for (size_t i = 0; i < board.columns.size(); ++i) table.rows.push_back(best_line(board, i));
  return table;
}

Table own_data_table(const Leaderboard& own) {
  Table table{
      .title = "Outside of the arena: test accuracy, percent",
      .caption = joined({"Rows compare only within one data set and budget. 95 %: half-width of "
                         "the 95 % interval, over seeds or over test examples, whichever is wider. "
                         "Training time is of one run, only its training steps.",
                         marks_legend(own)},
                        " "),
      .num_left = 3,
      .num_keys = 2,
      .is_list = true};
  std::vector<std::string> marks;
  for (size_t i = 0; i < own.columns.size(); ++i) {
    for (const Row& row : own.rows) {
      if (!row.cells[i].was_run()) continue;
      table.add(own_data_line(own, i, row));
      marks.push_back(texts_of(row.cells[i].marks));
    }
  }
  add_marks(table, std::move(marks));
  fold_columns(table, {"Settings", "Preset", "Tested weights", "Validation", "Division"});
  return table;
}

Table protocol_table(const Leaderboard& board) {
  Table table{.title = "Protocols",
              .caption =
                  "Validation: own split, held-out part of the training set, or the test set "
                  "itself. Checkpoint: the weights that were tested.",
              .header = {"Model", "Preset", "Settings", "Validation", "Checkpoint", "Division",
                         "Revision", "Machine"},
              .num_left = 8};
  for (const Row& row : board.rows) {
    Cells& cells = table.rows.emplace_back();
    for (const std::string& text : {row.title, row.preset, row.settings, row.validation,
                                    row.checkpoint, row.division, row.revisions, row.machines}) {
      cells.push_back({or_dash(text)});
    }
  }
  fold_columns(table, {"Settings", "Revision", "Machine"});
  return table;
}

Table training_speed_table(const Leaderboard& board) {
  Table table{.title = "Speed and memory of the training runs",
              .caption =
                  "Only training steps; padding is not counted as tokens. Relative: tokens per "
                  "second over the Transformer's with the same task settings, sizes and batches, "
                  "on the same machine and revision.",
              .num_left = 2,
              .num_keys = 2};
  for (size_t i = 0; i < board.columns.size(); ++i) {
    for (const Row& row : board.rows) {
      const CellSpeed& speed = row.cells[i].speed;
      if (!speed.tokens_per_s && !speed.peak_memory_bytes) continue;
      table.add({{"Task", {board.columns[i].title}},
                 {"Model", {row_label(board, row, row.cells[i].settings)}},
                 {"tokens/s", {rate_text(speed.tokens_per_s)}},
                 {"steps/s", {rate_text(speed.steps_per_s)}},
                 {"relative", {ratio_text(speed.relative)}},
                 {"peak memory", {memory_text(speed.peak_memory_bytes)}}});
    }
  }
  return table;
}

Table measurement_table(const Leaderboard& board) {
  Table table{
      .title = "Efficiency measurements",
      .caption =
          "Medians of timed windows, in brackets the slowest and fastest window; * long steps, "
          "timed in slices of their batch; ! see the warnings. Relative: to the Transformer "
          "measured in the same conditions. Paper: the same ratio on 16 TPU v3 chips. With data: "
          "the same steps with batches that are read from the task's data. Of GEMM: the model's "
          "floating-point operations per second over those of this machine's matrix product.",
      .num_left = 6,
      .num_keys = 2};
  for (const SpeedRow& row : board.speeds) table.add(measurement_line(row));
  fold_columns(table, {"Preset", "Settings", "mode", "dtype", "batch", "with data", "paper",
                       "Revision", "Machine"});
  return table;
}

// Runs that predict masked inputs have no result of their task: a list of their own, without ranks.
Table pretraining_table(const std::vector<RunRecord>& records) {
  Table table{.title = "Masked pretraining",
              .caption =
                  "Accuracy and loss of the last validation, at the hidden positions. These runs "
                  "learn no labels: they are in no other table.",
              .num_left = 3,
              .num_keys = 2};
  for (const RunRecord& run : records) {
    if (run.kind != "train" || !is_masked_run(run.config)) continue;
    const bool has_positions = run.val && run.val->num_positions;
    table.add({{"Task", {shown_task(run)}},
               {"Model", {run.model_title}},
               {"Preset", {run.preset}},
               {"Seed", {std::to_string(run.seed)}},
               {"Steps", {thousands(run.steps)}},
               {"Hidden", {has_positions ? thousands(*run.val->num_positions) : "-"}},
               {"Accuracy", {run.val ? fixed(100 * run.val->accuracy, 2) : "-"}},
               {"Loss", {run.val ? fixed(run.val->loss, 4) : "-"}},
               {"Status", {to_string(run.status)}}});
  }
  return table;
}

}  // namespace lra::report

// Long format: one line per figure, so that a spreadsheet or a data frame can pivot it as it likes.
#include <charconv>

#include "report/formats.h"
#include "report/markup.h"

namespace lra::report {
namespace {

std::string number(std::optional<double> value) {
  if (!value) return "";
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, *value).ptr);
}

// The row's own fields, as every line of the row repeats them.
std::string row_fields(const Row& row) {
  std::string text;
  for (const std::string& field : {row.model, row.preset, row.checkpoint, row.settings}) {
    text += csv(field) + ",";
  }
  return text;
}

// kind,model,preset,checkpoint,settings,task are written by the caller; these are the next columns.
std::string result_line(const Row& row, const TaskColumn& column, const Cell& cell) {
  const auto ours = cell.compared_accuracy();
  std::string line = "accuracy," + row_fields(row) + csv(column.task) + "," +
                     std::to_string(column.version) + "," + number(cell.shown_accuracy()) + "," +
                     std::to_string(cell.accuracy.count) + "," + number(cell.accuracy.deviation) +
                     "," + number(cell.accuracy.half_width95) + "," + (cell.fail ? "1" : "0");
  for (const int count : {cell.num_diverged, cell.num_failed, cell.num_unfinished}) {
    line += "," + std::to_string(count);
  }
  line += "," + number(cell.paper_v0) + "," + number(cell.paper_v1) + "," +
          number(difference(ours, cell.paper_v0)) + "," + number(difference(ours, cell.paper_v1)) +
          "," + csv(cell.validation) + "," + csv(cell.division) + "," +
          number(cell.speed.tokens_per_s) + "," + number(cell.speed.steps_per_s) + "," +
          number(cell.speed.relative) + ",";
  if (cell.speed.peak_memory_bytes) line += std::to_string(*cell.speed.peak_memory_bytes);
  return line + "," + csv(row.revisions) + "," + csv(row.machines) + "," + csv(cell.shortfall) +
         "\n";
}

std::string average_line(const Row& row, const std::string& name, const Average& average) {
  if (!average.ours) return "";
  return "average," + row_fields(row) + name + ",," + number(average.ours) + ",,,,,,,," +
         number(average.paper_v0) + "," + number(average.paper_v1) + "," +
         number(difference(average.compared, average.paper_v0)) + "," +
         number(difference(average.compared, average.paper_v1)) + "," + csv(row.validation) + "," +
         csv(row.division) + ",,,,," + csv(row.revisions) + "," + csv(row.machines) + ",\n";
}

std::string baseline_lines(const BaselineRow& baseline, const std::vector<TaskColumn>& columns) {
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!baseline.accuracy[i]) continue;
    text += "baseline," + csv(baseline.name) + ",,,," + csv(columns[i].task) + "," +
            std::to_string(columns[i].version) + "," + number(baseline.accuracy[i]) +
            ",,,,,,,,,,,,,,,,,,,,\n";
  }
  return text;
}

std::string speed_line(const SpeedRow& row) {
  const Measurement& m = row.measured;
  const std::string settings = m.mode + " " + m.dtype + " length " + std::to_string(m.length) +
                               " batch " + std::to_string(m.batch) +
                               (row.settings.empty() ? "" : ", " + row.settings);
  return "speed," + csv(row.model) + "," + csv(row.preset) + ",," + csv(settings) + "," +
         csv(row.task) + ",,,,,,,,,,,,,,,," + number(m.tokens_per_s) + "," + number(m.steps_per_s) +
         "," + number(row.relative) + "," + std::to_string(m.peak_resident_bytes) + "," +
         csv(row.revision) + "," + csv(row.machine) + ",\n";
}

}  // namespace

std::string format_csv(const ReportInput& input) {
  const Leaderboard& board = input.board;
  std::string text =
      "kind,model,preset,checkpoint,settings,task,task_version,percent,seeds,deviation,"
      "half_width95,fail,diverged,failed,unfinished,paper_v0,paper_v1,minus_paper_v0,"
      "minus_paper_v1,validation,division,tokens_per_s,steps_per_s,relative_speed,"
      "peak_memory_bytes,revision,machine,shortfall\n";
  for (const Row& row : board.rows) {
    for (size_t i = 0; i < board.columns.size(); ++i) {
      if (row.cells[i].was_run()) text += result_line(row, board.columns[i], row.cells[i]);
    }
    text += average_line(row, "average_of_five", row.scored);
    text += average_line(row, "average_of_all", row.present);
  }
  for (const BaselineRow& row : board.baselines) text += baseline_lines(row, board.columns);
  for (const SpeedRow& row : board.speeds) text += speed_line(row);
  return text;
}

}  // namespace lra::report

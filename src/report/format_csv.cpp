// Long format: one line per figure, so that a spreadsheet or a data frame can pivot it as it likes.
#include <array>
#include <charconv>
#include <map>

#include "base/error.h"
#include "report/formats.h"
#include "report/markup.h"

namespace lra::report {
namespace {

constexpr std::array kColumns = {"kind",
                                 "model",
                                 "preset",
                                 "checkpoint",
                                 "settings",
                                 "task",
                                 "task_version",
                                 "percent",
                                 "seeds",
                                 "deviation",
                                 "half_width95",
                                 "half_width95_over_seeds",
                                 "fail",
                                 "diverged",
                                 "failed",
                                 "unfinished",
                                 "paper_v0",
                                 "paper_v1",
                                 "minus_paper_v0",
                                 "minus_paper_v1",
                                 "validation",
                                 "division",
                                 "parameters",
                                 "train_seconds",
                                 "tokens_per_s",
                                 "steps_per_s",
                                 "relative_speed",
                                 "peak_memory_bytes",
                                 "revision",
                                 "machine",
                                 "suspect_data",
                                 "other_settings",
                                 "not_above_trivial"};

// A line of the file: fields by column. Those that are not set are empty.
class Line {
 public:
  void set(std::string_view column, const std::string& text) { fields_[column] = csv(text); }
  void set(std::string_view column, std::optional<double> value) {
    if (!value) return;
    char buffer[32];
    fields_[column] =
        std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, *value).ptr);
  }
  void set_count(std::string_view column, std::optional<int64_t> value) {
    if (value) fields_[column] = std::to_string(*value);
  }

  std::string text() const {
    std::string text;
    size_t num_written = 0;
    for (const std::string_view column : kColumns) {
      const auto found = fields_.find(column);
      num_written += found != fields_.end();
      text += (column == kColumns[0] ? "" : ",") + (found == fields_.end() ? "" : found->second);
    }
    LRA_CHECK_EQ(num_written, fields_.size());  // every field has a column
    return text + "\n";
  }

 private:
  std::map<std::string_view, std::string> fields_;
};

Line row_line(const std::string& kind, const Row& row, const std::string& settings) {
  Line line;
  line.set("kind", kind);
  line.set("model", row.model);
  line.set("preset", row.preset);
  line.set("checkpoint", row.checkpoint);
  line.set("settings", settings);
  line.set("revision", row.revisions);
  line.set("machine", row.machines);
  return line;
}

// `compared`: our figure, where it may be set against the paper.
void set_paper(Line& line, std::optional<double> compared, std::optional<double> v0,
               std::optional<double> v1) {
  line.set("paper_v0", v0);
  line.set("paper_v1", v1);
  line.set("minus_paper_v0", difference(compared, v0));
  line.set("minus_paper_v1", difference(compared, v1));
}

std::string result_line(const Row& row, const TaskColumn& column, const Cell& cell) {
  Line line = row_line("accuracy", row, cell.settings);
  line.set("task", column.task);
  line.set_count("task_version", column.version);
  line.set("percent", cell.shown_accuracy());
  line.set_count("seeds", cell.accuracy.count);
  line.set("deviation", cell.accuracy.deviation);
  line.set("half_width95", cell.interval);
  line.set("half_width95_over_seeds", cell.accuracy.half_width95);
  line.set_count("fail", cell.fail);
  line.set_count("diverged", cell.num_diverged);
  line.set_count("failed", cell.num_failed);
  line.set_count("unfinished", cell.num_unfinished);
  set_paper(line, cell.compared_accuracy(), cell.paper_v0, cell.paper_v1);
  line.set("validation", cell.validation);
  line.set("division", cell.division);
  line.set_count("parameters", cell.num_parameters);
  line.set("train_seconds", cell.train_seconds);
  line.set("tokens_per_s", cell.speed.tokens_per_s);
  line.set("steps_per_s", cell.speed.steps_per_s);
  line.set("relative_speed", cell.speed.relative);
  line.set_count("peak_memory_bytes", cell.speed.peak_memory_bytes);
  for (const auto& [kind, reason] : cell.marks) line.set(meaning_of(kind).field, reason);
  return line.text();
}

std::string average_line(const Row& row, const std::string& name, const Average& average) {
  if (!average.ours) return "";
  Line line = row_line("average", row, row.settings);
  line.set("task", name);
  line.set("percent", average.ours);
  set_paper(line, average.compared, average.paper_v0, average.paper_v1);
  line.set("validation", row.validation);
  line.set("division", row.division);
  return line.text();
}

std::string baseline_lines(const BaselineRow& baseline, const std::vector<TaskColumn>& columns) {
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!baseline.accuracy[i]) continue;
    Line line;
    line.set("kind", "baseline");
    line.set("model", baseline.name);
    line.set("task", columns[i].task);
    line.set_count("task_version", columns[i].version);
    line.set("percent", baseline.accuracy[i]);
    text += line.text();
  }
  return text;
}

std::string speed_line(const SpeedRow& row) {
  const Measurement& m = row.measured;
  const std::string settings = m.mode + " " + m.dtype + " length " + std::to_string(m.length) +
                               " batch " + std::to_string(m.batch) +
                               (row.settings.empty() ? "" : ", " + row.settings);
  Line line;
  line.set("kind", "speed");
  line.set("model", row.model);
  line.set("preset", row.preset);
  line.set("settings", settings);
  line.set("task", row.task);
  line.set("tokens_per_s", m.tokens_per_s);
  line.set("steps_per_s", m.steps_per_s);
  line.set("relative_speed", row.relative);
  line.set_count("peak_memory_bytes", m.peak_resident_bytes);
  line.set("revision", row.revision);
  line.set("machine", row.machine);
  return line.text();
}

}  // namespace

std::string format_csv(const ReportInput& input) {
  const Leaderboard& board = input.board;
  std::string text;
  for (const std::string_view column : kColumns) {
    text += (text.empty() ? "" : ",") + std::string(column);
  }
  text += "\n";
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

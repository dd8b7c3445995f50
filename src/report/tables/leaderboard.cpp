// Averages, FAIL and comparisons follow the paper where it is explicit: the average is the plain
// mean of five tasks, Path-X left out. Points that the paper leaves open are decided here:
//
// FAIL on Path-X: every finished run ran its full budget, the preset's steps, and none has a test
// accuracy above 50 % by more than three binomial standard errors. The paper gives no threshold. A
// task that was not run is never FAIL.
//
// A figure of fewer steps, of part of the test set or of suspect data is shown and marked, but
// enters no average and is not compared with the paper.
#include "report/tables/leaderboard.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/text_format.h"
#include "records/find_setting.h"
#include "report/tables/row_groups.h"

namespace lra::report {
namespace {

std::vector<TaskColumn> find_columns(const std::vector<RunRecord>& records) {
  std::map<std::pair<int, std::string>, TaskColumn> columns;  // by place in the paper and name
  for (const RunRecord& record : records) {
    if (record.kind != "train") continue;
    const auto paper = paper_task(record.task);
    columns.emplace(std::pair(task_order(record.task), record.task),
                    TaskColumn{record.task, shown_task(record), record.task_version, paper});
  }
  return mapped(columns, [](const auto& entry) { return entry.second; });
}

bool learned_nothing(const RunRecord& run) {
  return shortfall_of(run).empty() && run.test->num_examples > 0 &&
         100 * run.test->accuracy <= two_class_chance_limit(run.test->num_examples);
}

// The texts of the runs, each once.
template <typename Text>
std::string distinct(const Runs& runs, const Text& text_of) {
  std::set<std::string> texts;
  for (const RunRecord* run : runs) texts.insert(text_of(*run));
  return joined({texts.begin(), texts.end()}, "; ");
}

// `tested`: the runs with a figure.
void add_figure(const Runs& tested, Cell& cell) {
  if (tested.empty()) return;
  std::vector<double> accuracies;
  int64_t examples = 0;
  double seconds = 0;
  for (const RunRecord* run : tested) {
    accuracies.push_back(100 * run->test->accuracy);
    examples = std::max(examples, run->test->num_examples);
    seconds += run->train_seconds;
    cell.steps.insert(run->steps);
    cell.is_published = cell.is_published && run->published_setting;
  }
  cell.accuracy = summarize(accuracies);
  cell.interval = cell.accuracy.half_width95;
  if (examples > 0) {
    cell.interval =
        std::max(cell.interval.value_or(0), binomial_half_width95(cell.accuracy.mean, examples));
  }
  if (seconds > 0) cell.train_seconds = seconds / cell.accuracy.count;
  cell.fail = std::ranges::all_of(tested, [](auto* run) { return learned_nothing(*run); });
  cell.shortfall = distinct(tested, shortfall_of);
  cell.departure = distinct(tested, departure_of);
  add_mark(cell.marks, MarkKind::kSuspect,
           distinct(tested, [](const RunRecord& run) { return suspicion_of(run.data_checks); }));
}

// The facts that runs of other models must share to be ranked with these, their budget aside. Most
// settings of a task are in its data.
std::string setting_of(const RunRecord& run) {
  const auto length = find_setting_as<int64_t>(run.config, "task", "length").value_or(0);
  const int64_t tested = run.test ? run.test->num_examples : 0;
  return joined(
      {run.preset, run.data_hash, run.validation, std::to_string(length), std::to_string(tested)});
}

Cell make_cell(const TaskColumn& column, const RowGroup& group,
               const std::vector<RunRecord>& records) {
  Cell cell;
  const auto found = group.runs.find(column.task);
  if (found != group.runs.end()) {
    const Runs& runs = found->second;
    Runs tested = runs;
    std::erase_if(tested, [](const RunRecord* run) { return !has_figure(*run); });
    add_figure(tested, cell);
    const RunRecord& any = tested.empty() ? *runs.front() : *tested.front();
    cell.task_changes = task_changes_of(any);
    cell.setting = setting_of(any);
    cell.settings = group.task_settings.at(column.task);
    cell.validation = any.validation;
    cell.division = any.division;
    if (any.num_parameters > 0) cell.num_parameters = any.num_parameters;
    cell.speed = cell_speed(runs, records);
    cell.devices = distinct(runs, [](const RunRecord& run) { return device_of(run.provenance); });
    for (const RunRecord* run : runs) {
      cell.on_gpu = cell.on_gpu || is_on_gpu(run->provenance);
      cell.runs.push_back(static_cast<size_t>(run - records.data()));
      if (has_figure(*run)) continue;
      ++(run->status == RunStatus::kDiverged ? cell.num_diverged
         : run->status == RunStatus::kFailed ? cell.num_failed
                                             : cell.num_unfinished);
    }
  }
  cell.fail = cell.fail && column.paper == PaperTask::kPathX;
  const PaperModel* paper = paper_model(group.model);
  if (paper && column.paper && cell.task_changes.empty()) {
    cell.paper_v0 = paper_accuracy(*paper, *column.paper, PaperVersion::kV0);
    cell.paper_v1 = paper_accuracy(*paper, *column.paper, PaperVersion::kV1);
    cell.paper_fail = column.paper == PaperTask::kPathX;
  }
  return cell;
}

// Mean of one figure over `cells`; nullopt if a cell lacks it or there is no cell.
template <typename Figure>
std::optional<double> mean_over(const std::vector<const Cell*>& cells, const Figure& figure) {
  double sum = 0;
  for (const Cell* cell : cells) {
    const std::optional<double> value = std::invoke(figure, *cell);
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (cells.empty()) return std::nullopt;
  return sum / static_cast<double>(cells.size());
}

Average average_of(const std::vector<const Cell*>& cells) {
  return {.ours = mean_over(cells, &Cell::full_accuracy),
          .paper_v0 = mean_over(cells, &Cell::paper_v0),
          .paper_v1 = mean_over(cells, &Cell::paper_v1),
          .compared = mean_over(cells, &Cell::compared_accuracy)};
}

// "own" when all tasks agree, else "own; text: test": the commonest, then the exceptions.
template <typename Field>
std::string summarize_field(const std::vector<TaskColumn>& columns, const std::vector<Cell>& cells,
                            const Field& field) {
  std::map<std::string, int> counts;
  for (const Cell& cell : cells) {
    if (cell.was_run()) ++counts[field(cell)];
  }
  if (counts.empty()) return "";
  const auto common =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  std::string text = common->first;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].was_run() && field(cells[i]) != common->first) {
      text += "; " + columns[i].task + ": " + field(cells[i]);
    }
  }
  return text;
}

Row make_row(const RowGroup& group, const std::vector<TaskColumn>& columns,
             const std::vector<RunRecord>& records) {
  const RunRecord& any = *group.runs.begin()->second.front();
  Row row{group};
  row.title = any.model_title + (group.is_self_pretrained ? ", self-pretrained" : "");
  for (const TaskColumn& column : columns) row.cells.push_back(make_cell(column, group, records));
  row.validation = summarize_field(columns, row.cells, [](const Cell& c) { return c.validation; });
  row.division = summarize_field(columns, row.cells, [](const Cell& c) { return c.division; });
  Runs all;
  for (const auto& [task, runs] : group.runs) all.insert(all.end(), runs.begin(), runs.end());
  row.revisions = distinct(all, [](const RunRecord& run) { return revision_of(run.provenance); });
  row.machines = distinct(all, [](const RunRecord& run) { return machine_of(run.provenance); });
  std::vector<const Cell*> scored, present;
  for (size_t i = 0; i < columns.size(); ++i) {
    present.push_back(&row.cells[i]);
    if (columns[i].is_scored()) scored.push_back(&row.cells[i]);
  }
  if (scored.size() == kNumScoredTasks) row.scored = average_of(scored);
  row.present = average_of(present);
  return row;
}

// Adds the marks that depend on other rows.
void mark_cells(Leaderboard& board, const std::vector<RunRecord>& records) {
  const bool tells_apart = has_published(board);  // else one sentence says it of all
  for (Row& row : board.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      Cell& cell = row.cells[i];
      cell.trivial = best_trivial(board, i, cell, records);
      if (cell.accuracy.count == 0) continue;
      add_mark(cell.marks, MarkKind::kChanged,
               joined({cell.shortfall, cell.task_changes.empty() ? "" : "a changed task",
                       tells_apart ? cell.departure : ""}));
      const double surely = cell.accuracy.mean - cell.interval.value_or(0);
      if (cell.trivial.name.empty() || cell.trivial.accuracy < surely) continue;
      add_mark(cell.marks, MarkKind::kTrivial,
               fixed(cell.trivial.accuracy, 2) + " of " + cell.trivial.name);
    }
  }
}

// Points above the best trivial classifier, summed over the tasks that the row was run on; of rows
// that are not above, the accuracies.
std::pair<double, double> gain_of(const Row& row) {
  std::pair<double, double> gain = {0, 0};
  for (const Cell& cell : row.cells) {
    const double accuracy = cell.shown_accuracy().value_or(0);
    gain.first += std::max(0.0, accuracy - cell.trivial.accuracy);
    gain.second += accuracy;
  }
  return gain;
}

// Short runs of one budget are neighbors, those of more steps first.
std::pair<int64_t, std::string> budget_of(const Row& row) {
  int64_t most = 0;
  std::string budget;
  for (const Cell& cell : row.cells) {
    if (cell.full_accuracy()) return {INT64_MAX, ""};
    budget += cell.shown_accuracy() ? cell.setting : "-";
    for (const int64_t steps : cell.steps) {
      most = std::max(most, steps);
      budget += " " + std::to_string(steps);
    }
  }
  return {most, budget};
}

void sort_rows(Leaderboard& board) {
  const auto score = [](const Row& row) {
    return std::tuple(row.scored.ours.value_or(-1), row.present.ours.value_or(-1), budget_of(row),
                      gain_of(row));
  };
  std::ranges::stable_sort(board.rows, std::greater<>(), score);
}

}  // namespace

std::string shown_task(const RunIdentity& run) {
  const auto paper = paper_task(run.task);
  return paper ? std::string(paper_task_title(*paper)) : run.task_title;
}

std::optional<double> difference(std::optional<double> ours, std::optional<double> paper) {
  if (!ours || !paper) return std::nullopt;
  return *ours - *paper;
}

bool are_ranked(const Cell& a, const Cell& b) {
  if (!a.shown_accuracy() || !b.shown_accuracy() || a.setting != b.setting) return false;
  return (a.shortfall.empty() && b.shortfall.empty()) || a.steps == b.steps;
}

bool has_published(const Leaderboard& board) {
  return any_cell(board, [](const Cell& c) { return c.accuracy.count > 0 && c.is_published; });
}

Leaderboard build_leaderboard(const std::vector<RunRecord>& records) {
  refuse_mixed_versions(records);
  Leaderboard board;
  board.columns = find_columns(records);
  board.num_runs = static_cast<int>(std::ranges::count(records, "train", &RunRecord::kind));
  const std::vector<RowGroup> groups = group_runs(records, &board.warnings);
  for (const RowGroup& group : groups) {
    board.rows.push_back(make_row(group, board.columns, records));
  }
  board.baselines = find_baselines(records, board.columns);
  mark_cells(board, records);
  sort_rows(board);
  board.speeds = speed_rows(records);
  add_warnings(board, groups, records);
  return board;
}

}  // namespace lra::report

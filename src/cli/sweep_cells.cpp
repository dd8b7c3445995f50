// The runs of a suite with a sweep: which go on, and which are chosen.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/suite.h"
#include "io/atomic_file.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

// All tries of one model on one task: tries x seeds cells, the seeds of a try side by side.
struct Group {
  std::span<Cell> cells;
  size_t seeds;

  size_t tries() const { return cells.size() / seeds; }
  std::span<Cell> of_try(size_t index) const { return cells.subspan(index * seeds, seeds); }
};

std::vector<Group> groups_of(const Suite& suite, std::vector<Cell>& cells) {
  std::vector<Group> groups;
  for (auto begin = cells.begin(); begin != cells.end();) {
    const auto end = std::find_if(begin, cells.end(), [&](const Cell& cell) {
      return cell.task != begin->task || cell.model != begin->model;
    });
    const std::span<Cell> group(begin, end);
    begin = end;
    const bool is_skipped = std::ranges::any_of(group, [](const Cell& cell) {
      return cell.state == CellState::kNoData || cell.state == CellState::kLeftOut;
    });
    if (!is_skipped) groups.push_back({.cells = group, .seeds = suite.seeds.size()});
  }
  return groups;
}

// True if the cell was validated at step `goal`, or ended before it for good.
bool has_reached(const Cell& cell, int64_t goal) {
  const RunRecord& record = cell.record;
  if (record.status == RunStatus::kDiverged) return true;
  const bool has_ended = record.status == RunStatus::kDone || record.status == RunStatus::kStopped;
  if (!has_ended || record.val_curve.empty()) return false;
  const int64_t validated = record.val_curve.back().step;
  const bool is_over = record.ended_by || record.steps >= record.planned_steps;
  return validated >= goal || (is_over && validated == record.steps);
}

// Validation accuracy of the weights that would be tested if the run had ended at step `goal`;
// nothing for a run that diverged.
std::optional<double> accuracy_of(const Cell& cell, int64_t goal) {
  if (cell.record.status == RunStatus::kDiverged) return std::nullopt;
  const bool takes_best = cell.config.train.test_checkpoint == "best";
  std::optional<double> found;
  for (const Evaluation& e : cell.record.val_curve) {
    if (e.step > goal) break;
    found = takes_best && found ? std::max(*found, e.accuracy) : e.accuracy;
  }
  return found;
}

// By try.
std::vector<double> scores_of(const Group& group, int64_t goal) {
  std::vector<double> scores;
  for (size_t i = 0; i < group.tries(); ++i) {
    std::vector<std::optional<double>> accuracies;
    for (const Cell& cell : group.of_try(i)) accuracies.push_back(accuracy_of(cell, goal));
    scores.push_back(score_of_seeds(accuracies));
  }
  return scores;
}

void refuse_incomparable(const Suite& suite, const Cell& cell) {
  const training::TrainConfig& train = cell.config.train;
  if (cell.config.make_task()->validation() == "test") {
    refuse("sweep", cell.task + " validates on its test set, which must not choose settings",
           "a validation set of its own",
           "add --set task.validation=heldout (in a suite: validation = \"heldout\" in [" +
               cell.task + ".task])");
  }
  if (suite.sweep->settings.halving == 0) return;
  for (const std::string& name : varied_names(*suite.sweep)) {
    if (name != "train.steps" && name != "train.epochs" && name != "train.examples" &&
        name != "train.eval_every") {
      continue;
    }
    refuse("sweep.halving", "compares runs at equal steps, and " + name + " varies",
           "the same length for all", "leave out one of the two");
  }
  if (train.epochs > 0 || train.examples > 0) {
    refuse("sweep.halving", "compares runs at steps, and their length is set in epochs or examples",
           "train.steps", "set train.steps instead");
  }
}

std::vector<int64_t> goals_of(const Suite& suite, const Group& group) {
  const training::TrainConfig& train = group.cells[0].config.train;
  const int64_t halving = suite.sweep->settings.halving;
  std::vector<int64_t> goals = milestones(train.steps, train.eval_every, halving, group.tries());
  if (halving > 0 && goals.empty() && group.tries() > 1) {
    refuse("sweep.halving",
           "needs a validation before the last step; train.eval_every is " +
               std::to_string(train.eval_every) + ", train.steps " + std::to_string(train.steps),
           "validations while the runs train",
           "add --set train.eval_every=" + std::to_string(std::max<int64_t>(1, train.steps / 10)));
  }
  goals.push_back(kWholeTraining);
  return goals;
}

void plan_group(const Suite& suite, const Group& group) {
  for (Cell& cell : group.cells) {
    cell.goal = 0;
    cell.is_chosen = false;
  }
  std::vector<size_t> entrants(group.tries());
  std::iota(entrants.begin(), entrants.end(), 0);
  bool is_waiting = false;
  for (const int64_t goal : goals_of(suite, group)) {
    for (const size_t entrant : entrants) {
      for (Cell& cell : group.of_try(entrant)) {
        if (has_reached(cell, goal)) continue;
        cell.goal = goal;
        is_waiting = true;
      }
    }
    if (is_waiting) break;
    const size_t keep =
        goal == kWholeTraining ? 1 : kept_of(entrants.size(), suite.sweep->settings.halving);
    entrants = best_of(entrants, scores_of(group, goal), keep);
  }
  if (!is_waiting) {
    for (Cell& cell : group.of_try(entrants[0])) cell.is_chosen = true;
  }
  for (Cell& cell : group.cells) {
    if (cell.goal > 0 || cell.is_chosen) {
      // The state of a cell that trains, or is tested, is that of its record.
      if (cell.state == CellState::kTried) look_at_record(cell);
    } else {
      cell.state = CellState::kTried;
      cell.problem.clear();
    }
  }
}

Tuning tuning_of(const Suite& suite, const Group& group) {
  Tuning tuning{.tried = static_cast<int64_t>(group.tries()),
                .chosen_by = group.seeds == 1 ? "validation accuracy"
                                              : "mean validation accuracy of " +
                                                    std::to_string(group.seeds) + " seeds",
                .varied = varied_names(*suite.sweep)};
  for (const Cell& cell : group.cells) tuning.steps += cell.record.steps;
  // Lists that were shortened since do not undo what was tried.
  for (const Cell& cell : group.cells) {
    if (const auto& known = cell.record.tuning) {
      tuning.tried = std::max(tuning.tried, known->tried);
      tuning.steps = std::max(tuning.steps, known->steps);
    }
  }
  return tuning;
}

void move_run(Cell& cell, const std::string& to) {
  if (cell.folder == to) return;
  if (fs::exists(to)) {
    refuse(to, "is in the way of the run that the sweep chose, " + cell.folder,
           "no run, or one of this sweep", "move it away, or choose another --out");
  }
  make_folder(folder_of(to));
  fs::rename(cell.folder, to);
  cell.folder = to;
}

// `tuning` of a run that is chosen, else nothing. Locked until it has moved: nobody works in it.
// Where somebody does, the cell is "in use".
void settle(Cell& cell, const std::optional<Tuning>& tuning) {
  const std::string place = tuning ? chosen_folder(cell) : try_folder(cell);
  if (cell.record.tuning == tuning && cell.folder == place) return;
  with_lock(cell, [&] {
    const std::string path = training::RunFolder{cell.folder}.record();
    cell.record = read_record(path);  // it may have been tested since
    if (cell.record.tuning != tuning) {
      cell.record.tuning = tuning;
      write_record(cell.record, path);
    }
    move_run(cell, place);
  });
}

std::string fate_of(const Cell& cell) {
  if (cell.is_chosen) return "chosen";
  if (cell.goal > 0) return to_string(cell.state);
  if (cell.record.status == RunStatus::kDiverged) return "diverged";
  return has_reached(cell, kWholeTraining) ? "tried" : "stopped early";
}

void add_rows(const Group& group, TextTable& table) {
  const std::vector<double> scores = scores_of(group, kWholeTraining);
  std::vector<size_t> order(group.tries());
  std::iota(order.begin(), order.end(), 0);
  // Those that went on longer were better when they were compared.
  const auto steps = [&](size_t i) { return group.of_try(i)[0].record.steps; };
  order = best_of(order, scores, order.size());
  std::ranges::stable_sort(order, std::greater<>(), steps);
  std::ranges::stable_partition(order, [&](size_t i) { return group.of_try(i)[0].is_chosen; });
  for (const size_t i : order) {
    const Cell& cell = group.of_try(i)[0];
    table.add_row({cell.task, cell.model, cell.attempt.text,
                   scores[i] < 0 ? "-" : percent(scores[i]), thousands(steps(i)), fate_of(cell)});
  }
}

}  // namespace

void plan_sweep(const Suite& suite, std::vector<Cell>& cells) {
  for (const Group& group : groups_of(suite, cells)) {
    refuse_incomparable(suite, group.cells[0]);
    plan_group(suite, group);
  }
}

bool has_reached_goal(const Cell& cell) { return cell.goal > 0 && has_reached(cell, cell.goal); }

void settle_choice(const Suite& suite, std::vector<Cell>& cells) {
  for (const Group& group : groups_of(suite, cells)) {
    const Tuning tuning = tuning_of(suite, group);
    for (Cell& cell : group.cells) {
      if (!cell.is_chosen) settle(cell, std::nullopt);
    }
    if (std::ranges::count(group.cells, CellState::kInUse, &Cell::state) > 0) continue;
    for (Cell& cell : group.cells) {
      if (cell.is_chosen) settle(cell, tuning);
    }
  }
}

void run_sweep(const Suite& suite, std::vector<Cell>& cells,
               const std::function<void(const std::vector<Cell*>& round)>& train) {
  std::set<const Cell*> given_up;  // they did not come to their goal, and keep their state
  for (;;) {
    plan_sweep(suite, cells);
    settle_choice(suite, cells);
    std::vector<Cell*> due;
    for (Cell& cell : cells) {
      if (is_due(cell) && !given_up.contains(&cell)) due.push_back(&cell);
    }
    if (due.empty()) return;
    train(due);
    for (Cell* cell : due) {
      Cell now = *cell;
      if (now.state != CellState::kDamaged && now.state != CellState::kInUse) look_at_record(now);
      if (has_reached_goal(now)) {
        *cell = std::move(now);
      } else {
        given_up.insert(cell);
      }
    }
    if (stop_requested()) return plan_sweep(suite, cells);
  }
}

std::string sweep_table(const Suite& suite, std::vector<Cell> cells) {
  TextTable table({"task", "model", "settings", "validation", "steps", "state"});
  for (const Group& group : groups_of(suite, cells)) add_rows(group, table);
  return table.text();
}

}  // namespace lra::cli

// The runs of a suite: their folders, states and data.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/command_text.h"
#include "cli/suite.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "records/check_record.h"
#include "tasks/prepare_data.h"
#include "training/settings/data_root.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

// A run that is at work writes lines and checkpoints more often.
constexpr auto kSilence = std::chrono::minutes(10);

constexpr std::array kStateNames = {"running",     "in use", "damaged",   "diverged", "failed",
                                    "interrupted", "queued", "to submit", "stopped",  "waiting",
                                    "done",        "tried",  "no data",   "left out"};

CellState state_of(RunStatus status) {
  return status == RunStatus::kRunning    ? CellState::kRunning
         : status == RunStatus::kDone     ? CellState::kDone
         : status == RunStatus::kStopped  ? CellState::kStopped
         : status == RunStatus::kDiverged ? CellState::kDiverged
                                          : CellState::kFailed;
}

std::string version_of_data(const std::string& hash, int64_t task_version) {
  return hash + " of task version " + std::to_string(task_version);
}

// Nothing if there is none, or it is damaged, which the cell will say.
std::optional<RunRecord> readable_record(const std::string& folder) {
  const std::string path = training::RunFolder{folder}.record();
  if (!fs::exists(path)) return std::nullopt;
  try {
    return read_record(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Settings that the data of a task states of itself. Where there is none, those of a run that was
// made with it.
ConfigTable settings_of_data(const Cell& cell, const std::string& data_root) {
  ConfigTable of_data = tasks::task_on_data(cell.task, data_root).settings;
  if (of_data.size() != 1) return of_data;
  const std::optional<RunRecord> record = readable_record(cell.folder);
  const ConfigValue* task = record ? record->config.find("task") : nullptr;
  return task && task->as_table() ? *task->as_table() : of_data;
}

// True for a try whose run was moved to where chosen ones are. A damaged one is in the way of
// whatever is chosen.
bool was_chosen(const Cell& cell) {
  if (fs::exists(training::RunFolder{try_folder(cell)}.record())) return false;
  const std::optional<RunRecord> moved = readable_record(chosen_folder(cell));
  return moved && moved->config_hash == config_hash(cell.config.to_table());
}

}  // namespace

std::string to_string(CellState state) { return kStateNames.at(static_cast<size_t>(state)); }

void look_at_record(Cell& cell) {
  const training::RunFolder folder{cell.folder};
  cell.record = {};
  cell.state = CellState::kWaiting;
  if (!fs::exists(folder.record())) return;
  try {
    cell.record = read_consistent_record(folder.record());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUserError) throw;
    cell.state = CellState::kDamaged;
    cell.problem = error.what();
    return;
  }
  if (cell.record.config_hash != config_hash(cell.config.to_table())) {
    refuse(cell.folder, "the run there has other settings than the suite now asks for", "",
           "remove that folder, or choose another --out");
  }
  cell.state = state_of(cell.record.status);
}

void with_lock(Cell& cell, const std::function<void()>& change) {
  const training::RunFolder folder{cell.folder};
  std::optional<FileLock> lock;
  try {
    lock.emplace(folder.lock(), "the run folder " + folder.path);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUserError) throw;
    cell.state = CellState::kInUse;
    cell.problem = error.what();
    return;
  }
  change();
}

std::optional<int64_t> planned_steps(const Cell& cell) {
  if (cell.state == CellState::kTried) return cell.record.steps;
  if (cell.goal > 0 && cell.goal != kWholeTraining) return cell.goal;
  const training::TrainConfig& train = cell.config.train;
  if (cell.record.planned_steps > 0) return cell.record.planned_steps;
  return train.epochs == 0 && train.examples == 0 ? std::optional(train.steps) : std::nullopt;
}

bool has_saved(const Cell& cell) {
  if (!cell.record.weights_hash.empty()) return true;
  const std::vector<std::string> names = names_in(training::RunFolder{cell.folder}.checkpoints());
  return std::ranges::any_of(names,
                             [](const std::string& name) { return name.starts_with("step_"); });
}

bool is_due(const Cell& cell) {
  return cell.state == CellState::kWaiting || cell.state == CellState::kRunning ||
         cell.state == CellState::kStopped || cell.state == CellState::kFailed;
}

bool is_skipped(const Cell& cell) {
  return cell.state == CellState::kNoData || cell.state == CellState::kLeftOut ||
         cell.state == CellState::kTried;
}

bool is_at_work(const Cell& cell) {
  const training::RunFolder folder{cell.folder};
  if (is_locked(folder.lock())) return true;
  if (cell.state != CellState::kRunning || lock_owner(folder.lock()).is_here) return false;
  for (const std::string& file : {folder.metrics(), folder.record()}) {
    std::error_code ignored;  // not there yet
    const auto written = fs::last_write_time(file, ignored);
    if (!ignored && fs::file_time_type::clock::now() - written < kSilence) return true;
  }
  return false;
}

void mark_without_data(std::vector<Cell>& cells, const std::string& data_root,
                       const Program& program) {
  std::map<std::string, bool> available;
  for (Cell& cell : cells) {
    if (cell.state == CellState::kLeftOut) continue;
    const auto [known, is_new] = available.try_emplace(cell.task, false);
    if (is_new) {
      known->second =
          tasks::data_available(cell.config.task_spec(), *cell.config.make_task(), data_root);
      if (!known->second) {
        say(program, "note: there is no data for " + cell.task + " under " + data_root +
                         ", so its runs are skipped; see what can be imported with: " +
                         command_text({"help", cell.task}));
      }
    }
    if (!known->second) cell.state = CellState::kNoData;
  }
}

void refuse_other_data(const std::vector<Cell>& cells, const std::string& task,
                       const std::string& data_hash) {
  for (const Cell& cell : cells) {
    // A run that failed before it began has no data, and one without checkpoint begins again.
    const bool begins_again = cell.state == CellState::kFailed && !has_saved(cell);
    if (cell.task != task || cell.record.data_hash.empty() || begins_again) continue;
    const std::string data = version_of_data(cell.record.data_hash, cell.record.task_version);
    const std::string expected = version_of_data(data_hash, cell.config.task_spec().version);
    if (data == expected) continue;
    refuse(cell.folder, "the run there was trained on data " + data,
           expected + ", as the suite's other runs",
           "remove that folder, or choose another --out or --data");
  }
}

std::string Cell::name() const {
  const std::string settings = attempt.text.empty() ? "" : attempt.text + " ";
  return task + " " + model + " " + settings + "seed " + std::to_string(seed);
}

std::string Cell::run_name() const { return fs::path(folder).filename().string(); }

std::string chosen_folder(const Cell& cell) {
  return cell.out + "/" + file_name_of(cell.task) + "-" + file_name_of(cell.model) + "-s" +
         std::to_string(cell.seed);
}

std::string try_folder(const Cell& cell) {
  return cell.out + "/" + kTriesFolder + "/" + file_name_of(cell.task) + "-" +
         file_name_of(cell.model) + "-" + cell.attempt.name + "-s" + std::to_string(cell.seed);
}

std::vector<Cell> cells_of(const Suite& suite, const std::string& data) {
  std::vector<Cell> cells;
  const std::vector<Try> tries = suite.sweep ? tries_of(*suite.sweep) : std::vector<Try>(1);
  for (const std::string& task : suite.tasks) {
    for (const std::string& model : suite.models) {
      const std::string reason = reason_left_out(suite, task, model);
      for (const Try& attempt : tries) {
        ConfigTable overrides = suite.common;
        merge(overrides, suite.by_task.at(task));
        merge(overrides, suite.by_model.at(model));
        merge(overrides, attempt.values);
        for (const int64_t seed : suite.seeds) {
          Cell& cell = cells.emplace_back();
          cell.task = task;
          cell.model = model;
          cell.out = suite.folder;
          cell.seed = static_cast<uint64_t>(seed);
          cell.attempt = attempt;
          cell.accept = suite.accept;
          cell.folder = chosen_folder(cell);
          const tasks::TaskOnData on{task, settings_of_data(cell, data)};
          cell.config = training::resolve_on_data(on, model, suite.settings.preset, cell.seed, data,
                                                  overrides, {});
          if (suite.sweep && !was_chosen(cell)) cell.folder = try_folder(cell);
          look_at_record(cell);
          if (reason.empty() || !is_due(cell)) continue;
          cell.state = CellState::kLeftOut;
          cell.problem = reason;
        }
      }
    }
  }
  return cells;
}

void say(const Program& program, const std::string& text) {
  if (!program.common.quiet) std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace lra::cli

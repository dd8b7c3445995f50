#include "cli/suite_cells.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/command_text.h"
#include "base/parallel.h"
#include "base/resources.h"
#include "base/stop_flag.h"
#include "cli/child_process.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "tasks/prepare_data.h"
#include "training/new_record.h"
#include "training/presets.h"
#include "training/record_findings.h"
#include "training/run_folder.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

// A run that is at work writes lines and checkpoints more often.
constexpr auto kSilence = std::chrono::minutes(10);

constexpr std::array kStateNames = {"waiting", "no data",     "in use",  "damaged",
                                    "running", "done",        "stopped", "diverged",
                                    "failed",  "interrupted", "queued",  "to submit"};

CellState state_of(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return CellState::kRunning;
    case RunStatus::kDone:
      return CellState::kDone;
    case RunStatus::kStopped:
      return CellState::kStopped;
    case RunStatus::kDiverged:
      return CellState::kDiverged;
    case RunStatus::kFailed:
      break;
  }
  return CellState::kFailed;
}

// Sets state and record. Throws for a run with other settings.
void look_at_record(Cell& cell) {
  const training::RunFolder folder{cell.folder};
  cell.record = {};
  cell.state = CellState::kWaiting;
  if (!fs::exists(folder.record())) return;
  try {
    RunRecord record = read_consistent_record(folder.record());
    if (record.status == RunStatus::kDone) {
      refuse_findings(training::record_findings(record, folder.record()), folder.record());
    }
    cell.record = std::move(record);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUserError) throw;
    cell.state = CellState::kDamaged;
    cell.problem = error.what();
    return;
  }
  if (cell.record.config_hash != config_hash(cell.config.to_table())) {
    throw Error({.where = cell.folder,
                 .what = "the run there has other settings than the suite now asks for",
                 .advice = "remove that folder, or choose another --out"});
  }
  cell.state = state_of(cell.record.status);
}

// True if the run saved something: it continues from there, or reports that it is gone.
bool has_saved(const Cell& cell) {
  if (!cell.record.weights_hash.empty()) return true;
  const std::vector<std::string> names = names_in(training::RunFolder{cell.folder}.checkpoints());
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.starts_with("step_"); });
}

// Calls `change` with the cell's folder, which must exist, locked. Where another process has it,
// the cell is "in use" and nothing is called.
template <typename Change>
void with_lock(Cell& cell, const Change& change) {
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

// Looks again, as hours may have passed since the suite began, and makes room where nothing of a
// failed run is worth keeping.
void prepare_folder(Cell& cell) {
  if (!fs::exists(cell.folder)) return look_at_record(cell);
  with_lock(cell, [&] {
    look_at_record(cell);
    if (cell.state != CellState::kFailed || has_saved(cell)) return;
    fs::remove_all(cell.folder);
    look_at_record(cell);
  });
}

// "train.steps=200" for every leaf of the resolved settings: the child resolves to exactly the same
// config.
void append_sets(const ConfigTable& table, const std::string& prefix,
                 std::vector<std::string>& words) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (const ConfigTable* inner = value.as_table()) {
      append_sets(*inner, name, words);
    } else {
      ConfigTable one;
      one.set("v", value);
      std::string text = to_toml(one).substr(4);
      text.pop_back();
      words.insert(words.end(), {"--set", name + "=" + text});
    }
  }
}

// Resources of each of the runs that run at the same time.
struct Share {
  bool is_whole = true;
  int threads = 0;  // 0: as many as there are
  int64_t memory_bytes = 0;
};

Share share_of(int jobs, const CommonOptions& common) {
  if (jobs == 1) return {.threads = common.threads};
  return {.is_whole = false,
          .threads = common.threads > 0 ? common.threads : std::max(1, num_threads() / jobs),
          .memory_bytes = std::max<int64_t>(1, available_memory_bytes() / jobs)};
}

std::vector<std::string> train_arguments(const Cell& cell, const std::string& data_root,
                                         const Share& share, const CommonOptions& common) {
  std::vector<std::string> words = {"train", "--json", "--data", data_root};
  if (cell.state == CellState::kWaiting) {
    words.insert(words.end(), {cell.task, cell.model, "--preset", cell.config.preset, "--seed",
                               std::to_string(cell.seed), "--out", cell.folder});
    ConfigTable settings = cell.config.to_table();
    settings.erase("run");
    append_sets(settings, "", words);
  } else {
    words.insert(words.end(), {"--resume", cell.folder});
  }
  if (common.quiet || !share.is_whole) words.push_back("--quiet");
  if (share.threads > 0) words.insert(words.end(), {"--threads", std::to_string(share.threads)});
  words.insert(words.end(), {"--device", common.device.str()});
  if (!share.is_whole)
    words.insert(words.end(), {"--memory-limit", std::to_string(share.memory_bytes)});
  return words;
}

// A child that died leaves no record of its end; the report must know of it.
void write_failure(const Cell& cell, const Program& program) {
  RunRecord record = cell.record;
  record.status = RunStatus::kFailed;
  record.failure = cell.problem;
  static_cast<RunIdentity&>(record) = training::identity_of(cell.config, record.data_hash);
  record.config = cell.config.to_table();
  if (record.provenance.lra_version.empty()) record.provenance = program_provenance(program.common);
  write_record(record, training::RunFolder{cell.folder}.record());
}

void record_failure(Cell& cell, const ChildResult& result, const Program& program) {
  make_folder(cell.folder);
  with_lock(cell, [&] {
    look_at_record(cell);
    // The folder may have been lost to another process that has ended since.
    if (cell.state == CellState::kDone || cell.state == CellState::kDamaged) return;
    cell.state = CellState::kFailed;
    cell.failure = failure_code(result.exit_code);
    cell.problem = "ended with " + describe_end(result.exit_code);
    if (!result.error.empty()) cell.problem += ": " + result.error;
    write_failure(cell, program);
  });
}

void judge_end(Cell& cell, const ChildResult& result, const Program& program) {
  cell.problem.clear();
  switch (static_cast<ExitCode>(result.exit_code)) {
    case ExitCode::kDone:
      cell.state = CellState::kDone;
      break;
    case ExitCode::kStopped:
      cell.state = CellState::kStopped;
      break;
    case ExitCode::kDiverged:
      cell.state = CellState::kDiverged;
      break;
    default:
      // Ended by us, at the second request to stop: its record has the details.
      if (!stop_requested()) record_failure(cell, result, program);
  }
}

// The message about a cell that was not trained, or not to its end.
std::string explanation(const Cell& cell) {
  if (cell.state == CellState::kDiverged) {
    return "diverged; the same seed would diverge again, so it is not repeated unless " +
           cell.folder + " is removed";
  }
  if (cell.state == CellState::kStopped) return "stopped; re-run the same command to resume";
  return to_string(cell.state) + (cell.problem.empty() ? "" : ": " + cell.problem);
}

// Reports the warnings of a run that was quiet.
void say_warnings(const Cell& cell, const std::string& name, const Program& program) {
  const std::string path = training::RunFolder{cell.folder}.record();
  if (cell.state == CellState::kDamaged || !fs::exists(path)) return;
  for (const std::string& warning : read_record(path).warnings.value_or(std::vector<std::string>{}))
    say(program, name + ": " + warning);
}

}  // namespace

std::string to_string(CellState state) { return kStateNames.at(static_cast<size_t>(state)); }

std::string counts_text(const std::vector<CellState>& states) {
  std::map<std::string, int> counts;
  for (const CellState state : states) ++counts[to_string(state)];
  std::string text;
  for (const auto& [state, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + state;
  }
  return text;
}

bool is_due(const Cell& cell) {
  switch (cell.state) {
    case CellState::kWaiting:
    case CellState::kRunning:
    case CellState::kStopped:
    case CellState::kFailed:
      return true;
    case CellState::kNoData:
    case CellState::kInUse:
    case CellState::kDamaged:
    case CellState::kDone:
    case CellState::kDiverged:
    case CellState::kInterrupted:
    case CellState::kQueued:
    case CellState::kToSubmit:
      break;
  }
  return false;
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

void leave_out_without_data(std::vector<Cell>& cells, const std::string& data_root,
                            const Program& program) {
  std::map<std::string, bool> available;
  for (Cell& cell : cells) {
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

namespace {

std::string version_of_data(const std::string& hash, int64_t task_version) {
  return hash + " of task version " + std::to_string(task_version);
}

}  // namespace

std::string data_of(const Cell& cell) {
  // A run that failed before it began has no data, and one without checkpoint begins again.
  const bool begins_again = cell.state == CellState::kFailed && !has_saved(cell);
  if (cell.record.data_hash.empty() || begins_again) return "";
  return version_of_data(cell.record.data_hash, cell.record.task_version);
}

void refuse_other_data(const std::vector<Cell>& cells, const std::string& task,
                       const std::string& data_hash) {
  for (const Cell& cell : cells) {
    const std::string data = cell.task == task ? data_of(cell) : "";
    const std::string expected = version_of_data(data_hash, cell.config.task_spec().version);
    if (data.empty() || data == expected) continue;
    throw Error({.where = cell.folder,
                 .what = "the run there was trained on data " + data,
                 .expected = expected + ", as the suite's other runs",
                 .advice = "remove that folder, or choose another --out or --data"});
  }
}

std::string Cell::name() const { return task + " " + model + " seed " + std::to_string(seed); }

std::string Cell::run_name() const {
  return file_name_of(task) + "-" + file_name_of(model) + "-s" + std::to_string(seed);
}

namespace {

// Settings that the data of a task states of itself. Where there is none, those of a run that was
// made with it.
ConfigTable settings_of_data(const Cell& cell, const std::string& data_root) {
  ConfigTable of_data = tasks::task_on_data(cell.task, data_root).settings;
  const std::string record = training::RunFolder{cell.folder}.record();
  if (of_data.size() == 1 && fs::exists(record)) {
    try {
      const ConfigTable config = read_record(record).config;
      if (const ConfigValue* task = config.find("task"); task && task->as_table()) {
        of_data = *task->as_table();
      }
    } catch (const Error&) {  // damaged: the cell will say so
    }
  }
  return of_data;
}

}  // namespace

std::vector<Cell> cells_of(const Suite& suite, const std::string& out, const std::string& data,
                           const std::string& only) {
  std::vector<Cell> cells;
  std::vector<std::string> names;
  for (const std::string& task : suite.tasks) {
    for (const std::string& model : suite.models) {
      ConfigTable overrides = suite.common;
      merge(overrides, suite.by_task.at(task));
      merge(overrides, suite.by_model.at(model));
      for (const int64_t seed : suite.seeds) {
        Cell cell;
        cell.task = task;
        cell.model = model;
        cell.seed = static_cast<uint64_t>(seed);
        cell.folder = out + "/" + cell.run_name();
        names.push_back(cell.run_name());
        if (!only.empty() && only != names.back()) continue;
        const ConfigTable of_data = settings_of_data(cell, data);
        ConfigTable settings;
        if (!of_data.empty()) settings.set("task", {of_data, data});
        merge(settings, overrides);
        cell.config =
            training::resolve_run(task, model, suite.settings.preset, cell.seed, settings, {});
        tasks::refuse_import_settings(cell.config.task_spec(), of_data, cell.config.task_settings);
        look_at_record(cell);
        cells.push_back(std::move(cell));
      }
    }
  }
  if (cells.empty()) {
    throw Error({.where = "--only",
                 .what = "the suite has no run '" + only + "'",
                 .expected = "TASK-MODEL-sSEED",
                 .advice = suggestion(only, names)});
  }
  return cells;
}

void say(const Program& program, const std::string& text) {
  if (!program.common.quiet) std::fprintf(stderr, "%s\n", text.c_str());
}

void run_cells(std::vector<Cell>& cells, const std::string& data_root, int jobs,
               const Program& program) {
  const Share share = share_of(jobs, program.common);
  Children children;
  const auto name = [&](size_t i) {
    return "[" + std::to_string(i + 1) + "/" + std::to_string(cells.size()) + "] " +
           cells[i].name();
  };
  for (size_t next = 0;;) {
    while (!stop_requested() && next < cells.size() &&
           children.size() < static_cast<size_t>(jobs)) {
      const size_t i = next++;
      Cell& cell = cells[i];
      if (is_due(cell)) prepare_folder(cell);
      if (is_due(cell)) {
        say(program, name(i) + (cell.state == CellState::kWaiting
                                    ? ""
                                    : ": resumes, it was " + to_string(cell.state)));
        children.start(i, train_arguments(cell, data_root, share, program.common));
      } else {
        say(program, name(i) + ": " + explanation(cell));
      }
    }
    if (children.size() == 0) return;
    const Children::Ended ended = children.wait_for_one();
    Cell& cell = cells[ended.id];
    judge_end(cell, ended.result, program);
    if (jobs > 1) say_warnings(cell, name(ended.id), program);
    if (jobs > 1 || cell.state != CellState::kDone)
      say(program, name(ended.id) + ": " + explanation(cell));
  }
}

ExitCode judge_cells(const std::vector<Cell>& cells) {
  std::optional<ExitCode> failed;
  bool diverged = false, unfinished = false;
  for (const Cell& cell : cells) {
    if (cell.state == CellState::kDone || cell.state == CellState::kNoData) continue;
    std::fprintf(stderr, "lra: %s %s\n", cell.name().c_str(), explanation(cell).c_str());
    if (cell.state == CellState::kDiverged) {
      diverged = true;
    } else if (is_due(cell) && cell.state != CellState::kFailed) {
      unfinished = true;
    } else if (!failed) {
      failed = cell.failure;
    }
  }
  if (failed) return *failed;
  if (unfinished) return ExitCode::kStopped;
  return diverged ? ExitCode::kDiverged : ExitCode::kDone;
}

}  // namespace lra::cli

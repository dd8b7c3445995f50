// The runs of a suite: their folders, states and data, and what trains, compares, shows and submits
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/slurm.h"
#include "cli/suite_file.h"
#include "training/settings/run_config.h"

namespace lra::cli {

// ---- cells

// States in the order of a dashboard: what runs, what went wrong, what is next, what is over.
enum class CellState {
  kRunning,  // the status of its record, whose writer may be gone
  kInUse,    // another process works in its folder
  kDamaged,  // its record cannot be read or believed
  kDiverged,
  kFailed,
  kInterrupted,  // nobody works on a running one; printed by `lra suite status` alone
  kQueued,       // given to SLURM, which has not begun it; printed by `status` and `submit`
  kToSubmit,     // printed by `lra suite submit` alone
  kStopped,
  kWaiting,  // there is no record
  kDone,
  kTried,  // of a sweep: compared, and neither chosen nor to be trained further
  kNoData,
  kLeftOut  // not trained to its end, and not to be: the suite's file says so
};
// "running", "in use", "damaged", ...
std::string to_string(CellState state);

inline constexpr int64_t kWholeTraining = INT64_MAX;

// One run of a suite.
struct Cell {
  std::string task, model, out, folder;  // `out`: of the suite
  uint64_t seed = 0;
  Try attempt;             // of a sweep
  int64_t goal = 0;        // the step of a try at which it is compared; 0: it ends with its test
  bool is_chosen = false;  // by the sweep
  std::vector<std::string> accept;  // checks of the data whose warnings are accepted
  training::RunConfig config;
  CellState state = CellState::kWaiting;
  RunRecord record;                         // as it was last read, where there is one
  std::string problem;                      // why it failed, is left out, in use or damaged
  ExitCode failure = ExitCode::kUserError;  // of a failed one

  std::string name() const;      // "text linformer seed 0"
  std::string run_name() const;  // "text-linformer-s0", the last part of `folder`
};

// The folder of a run of a suite without a sweep, or with chosen settings; and of the others.
std::string chosen_folder(const Cell& cell);
std::string try_folder(const Cell& cell);

// Every cell of the suite with its state; their data are under `data`. Of a sweep: every try, which
// plan_sweep then plans. Throws lra::Error if one of them has other settings than the suite
// requests.
std::vector<Cell> cells_of(const Suite& suite, const std::string& data);

// Reads the record in the cell's folder again: sets state, record and problem. Throws lra::Error
// for a run with other settings.
void look_at_record(Cell& cell);

// Calls `change` with the cell's folder, which must exist, locked. Where another process has it,
// the cell is "in use" and nothing is called.
void with_lock(Cell& cell, const std::function<void()>& change);

// The step that the cell is trained to for now; nothing where only its data tell.
std::optional<int64_t> planned_steps(const Cell& cell);

// True if the run saved something: it continues from there, or reports that it is gone.
bool has_saved(const Cell& cell);

// True if run_cells would train it, in its present state.
bool is_due(const Cell& cell);

// True if the suite does not train it and ends well nevertheless: left out, without data, or tried.
bool is_skipped(const Cell& cell);

// True if a process is running it: its folder is locked; or its record says so, its lock was taken
// on another machine, whose locks a shared file system may hide, and its output is less than ten
// minutes old.
bool is_at_work(const Cell& cell);

// "12 done, 1 running", of what has a `state`.
std::string counts_text(const auto& cells) {
  std::map<std::string, int> counts;
  for (const auto& cell : cells) ++counts[to_string(cell.state)];
  std::string text;
  for (const auto& [state, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + state;
  return text;
}

// Sets the state of every cell whose task has no data and cannot generate it to "no data", and
// reports it.
void mark_without_data(std::vector<Cell>& cells, const std::string& data_root,
                       const Program& program);

// Throws lra::Error for a run of `task` that was trained on other data than those with `data_hash`,
// or with another version of the task: its figures would be compared with those of others.
void refuse_other_data(const std::vector<Cell>& cells, const std::string& task,
                       const std::string& data_hash);

// Prints a line to standard error, unless --quiet.
void say(const Program& program, const std::string& text);

// ---- training

// The devices of the places where runs train at the same time: `jobs` of them, or one for each
// device; neighbors are on different devices.
std::vector<std::string> places_of(const std::vector<std::string>& devices, int jobs = 0);

// Trains the unfinished cells, each in a separate process, one in each place at a time, until a
// stop is requested. With several, each gets its share of the processor's cores (unless --threads
// says otherwise) and of the memory that is free now, and their progress bars are replaced by a
// line per cell and its warnings.
// - A failed cell continues from its checkpoint, whatever ended it; one without starts over.
// - A diverged cell stays as recorded, because the same seed would diverge again, bit for bit. It
//   runs again if its folder was removed.
// - A folder that another process has locked is not touched, whatever its record says.
void run_cells(const std::vector<Cell*>& cells, const std::string& data_root,
               const std::vector<std::string>& places, const Program& program);

// The suite's exit code: the first failed cell's code (2 for one in use or damaged), else 3 when
// one is not trained to its end, else 4 when one diverged, else 0. All these cells are named on
// standard error, also with --quiet.
ExitCode judge_cells(const std::vector<Cell>& cells);

// ---- sweeps: every model tries the same settings, each with all seeds. A try stops before its
// test; with halving, also at milestones, after which only the better ones go on. The try with the
// best mean validation accuracy of all seeds is chosen: its runs leave the folder kTriesFolder, and
// only they are tested.

// Decides what is next for every cell, from the records that were last read: sets `goal` of those
// that train, `is_chosen`, and the state "tried" of the others. The answer is the same for
// everybody who reads the same records. Throws lra::Error for a sweep that cannot compare: a
// validation set that is the test set, or halving without a validation before the end.
void plan_sweep(const Suite& suite, std::vector<Cell>& cells);

// True for a try that has what it is compared by.
bool has_reached_goal(const Cell& cell);

// Moves the runs of chosen settings to where those of a suite without a sweep are, with the count
// of tries in their records, and those that are no longer chosen back; a model of which another
// process has a run stays for the next time. For the holder of the suite's lock.
void settle_choice(const Suite& suite, std::vector<Cell>& cells);

// Calls `train` with the cells that are due, and plans again, until none is left that `train` did
// not fail to bring to its goal, or a stop is requested.
void run_sweep(const Suite& suite, std::vector<Cell>& cells,
               const std::function<void(const std::vector<Cell*>& round)>& train);

// A row for each try, the best of each model first: its settings, mean validation accuracy of the
// seeds, and what became of it.
std::string sweep_table(const Suite& suite, std::vector<Cell> cells);

// ---- commands

// The arguments of all commands of a suite; each has some of them.
struct SuiteArguments {
  std::string file, data, out, only;
  std::vector<std::string> devices;  // of the runs; empty: --device
  int jobs = 0;                      // 0: one for each device
  bool watch = false, all = false, slurm = false, dry_run = false;
  SlurmJob job;  // without what the suite says
};

inline constexpr const char *kRunsHelp = "folder of the runs; default runs/NAME",
                            *kAllHelp = "also the runs that the suite's file leaves out";

// "--out", "--data", "--jobs", "--devices" of the commands that train a suite. What these compute
// themselves is done on the first of the devices.
void add_suite_options(CLI::App& command, SuiteArguments& arguments, CommonOptions& common);

// Trains what is not finished, measures, prints the leaderboard and writes the report.
ExitCode run_suite(const Program& program, const SuiteArguments& arguments);

// Progress of the runs, read from their folders: also while other processes, on this machine or on
// another with the same file system, work on them. Prints one line per run, or JSON; with --watch
// redraws the table every two seconds until no run is active, and no suite or batch system exists
// to begin one that waits; or until a stop is requested.
ExitCode show_suite(const Program& program, const SuiteArguments& arguments);

// lra suite submit: the runs of a suite as job arrays of a batch system.
void add_submit_options(CLI::App& command, SuiteArguments& arguments);
ExitCode submit_suite(const Program& program, const SuiteArguments& arguments);

}  // namespace lra::cli

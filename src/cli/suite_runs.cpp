// Trains the runs of a suite.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "base/config.h"
#include "base/parallel.h"
#include "base/resources.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/child_process.h"
#include "cli/compute.h"
#include "cli/live_lines.h"
#include "cli/suite.h"
#include "io/atomic_file.h"
#include "records/run_identity.h"
#include "training/settings/new_record.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

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

// Options of each of the runs that run at the same time, and their share of the memory.
struct Share : CommonOptions {
  int64_t memory_bytes = 0;  // 0: as many as are free
};

Share share_of(size_t places, const CommonOptions& common) {
  Share share{common};
  const auto jobs = static_cast<int>(places);
  if (jobs == 1) return share;
  if (share.threads == 0) share.threads = std::max(1, num_threads() / jobs);
  share.memory_bytes = std::max<int64_t>(1, available_memory_bytes() / jobs);
  return share;
}

std::vector<std::string> train_arguments(const Cell& cell, const std::string& data_root,
                                         const Share& share) {
  std::vector<std::string> words = {"train", "--json", "--data", data_root};
  if (cell.state == CellState::kWaiting) {
    words.insert(words.end(), {cell.task, cell.model, "--preset", cell.config.preset, "--seed",
                               std::to_string(cell.seed), "--out", cell.folder});
    ConfigTable settings = cell.config.to_table();
    settings.erase("run");
    // Every resolved setting: the child resolves to exactly the same config.
    for (const auto& [name, text] : setting_texts(settings)) {
      words.insert(words.end(), {"--set", name + "=" + text});
    }
    for (const std::string& check : cell.accept) words.insert(words.end(), {"--accept", check});
  } else {
    words.insert(words.end(), {"--resume", cell.folder});
  }
  if (cell.goal > 0) words.push_back("--no-test");
  if (cell.goal > 0 && cell.goal != kWholeTraining)
    words.insert(words.end(), {"--stop-after", std::to_string(cell.goal)});
  add_common_words(words, share);
  if (share.memory_bytes > 0)
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
    case ExitCode::kStopped:
      look_at_record(cell);
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
  const auto& validation = cell.record.val;
  if (cell.state == CellState::kStopped && cell.goal > 0 && validation && !stop_requested()) {
    return "validation " + percent(validation->accuracy) + " at step " +
           thousands(validation->step);
  }
  if (cell.state == CellState::kDone && cell.record.test)
    return "done, test accuracy " + percent(cell.record.test->accuracy);
  if (cell.state == CellState::kStopped) return "stopped; re-run the same command to resume";
  return to_string(cell.state) + (cell.problem.empty() ? "" : ": " + cell.problem);
}

// Reports the warnings of a run that was quiet; those that runs of a model share, for the first.
void tell_warnings(const Cell& cell, const std::string& name, std::set<std::string>& told,
                   const std::function<void(const std::string&)>& tell) {
  const std::string path = training::RunFolder{cell.folder}.record();
  if (cell.state == CellState::kDamaged || !fs::exists(path)) return;
  const RunRecord record = read_record(path);
  for (const std::string& warning : items_of(record.warnings))
    if (told.insert(cell.task + " " + cell.model + " " + warning).second)
      tell(name + ": " + warning);
}

}  // namespace

std::vector<std::string> places_of(const std::vector<std::string>& devices, int jobs) {
  const size_t count = jobs > 0 ? static_cast<size_t>(jobs) : devices.size();
  std::vector<std::string> places;
  for (size_t n = 0; n < count; ++n) places.push_back(devices[n % devices.size()]);
  return places;
}

void run_cells(const std::vector<Cell*>& cells, const std::string& data_root,
               const std::vector<std::string>& places, const Program& program) {
  LiveLines lines(ProgressTarget::standard_error());
  Share share = share_of(places.size(), program.common);
  share.quiet = program.common.quiet || places.size() > 1 || lines.is_on();
  const auto tell = [&](const std::string& text) {
    if (!program.common.quiet) lines.print(text);
  };
  Children children;
  const std::optional<size_t> nobody;
  std::vector<std::optional<size_t>> taken(places.size());  // by which cell
  std::set<std::string> told;
  const auto name = [&](size_t i) {
    return "[" + std::to_string(i + 1) + "/" + std::to_string(cells.size()) + "] " +
           cells[i]->name();
  };
  for (size_t next = 0;;) {
    while (!stop_requested() && next < cells.size() && children.size() < places.size()) {
      const size_t i = next++;
      Cell& cell = *cells[i];
      if (is_due(cell)) prepare_folder(cell);
      if (!is_due(cell)) {
        tell(name(i) + ": " + explanation(cell));
        continue;
      }
      const bool is_new = cell.state == CellState::kWaiting;
      if (!lines.is_on()) {
        const bool goes_on = is_new || cell.goal > 0 || cell.is_chosen;
        tell(name(i) + (goes_on ? "" : ": resumes, it was " + to_string(cell.state)));
      } else if (!program.common.quiet) {
        lines.add(i, name(i), training::RunFolder{cell.folder}.metrics(),
                  planned_steps(cell).value_or(0));
      }
      const auto place = std::ranges::find(taken, nobody);
      *place = i;
      share.device = places[static_cast<size_t>(place - taken.begin())];
      children.start(i, train_arguments(cell, data_root, share));
    }
    if (children.size() == 0) return;
    const Children::Ended ended = children.wait_for_one([&] { lines.update(); });
    Cell& cell = *cells[ended.id];
    lines.remove(ended.id);
    std::ranges::replace(taken, std::optional(ended.id), nobody);
    judge_end(cell, ended.result, program);
    if (share.quiet && !program.common.quiet) tell_warnings(cell, name(ended.id), told, tell);
    if (share.quiet || cell.state != CellState::kDone)
      tell(name(ended.id) + ": " + explanation(cell));
  }
}

ExitCode judge_cells(const std::vector<Cell>& cells) {
  std::optional<ExitCode> failed;
  bool diverged = false, unfinished = false;
  for (const Cell& cell : cells) {
    if (cell.state == CellState::kDone || is_skipped(cell)) continue;
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

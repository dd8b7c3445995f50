// lra suite status.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/live_lines.h"
#include "cli/slurm.h"
#include "cli/suite_cells.h"
#include "cli/sweep_cells.h"
#include "cli/terminal.h"
#include "io/lock_file.h"
#include "training/settings/data_root.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

constexpr auto kRedraw = std::chrono::seconds(2);

struct CellStatus {
  const Cell* cell;
  CellState state;
  bool is_submitted = false;
  int64_t steps = 0;
  std::optional<int64_t> planned_steps;  // unknown before a run whose budget is in examples
  std::optional<Pace> pace;
};

CellStatus status_of(const Cell& cell, const std::set<std::string>& submitted) {
  CellStatus status{.cell = &cell, .state = cell.state, .planned_steps = {}, .pace = {}};
  status.is_submitted = submitted.contains(cell.run_name());
  status.planned_steps = planned_steps(cell);
  if (cell.state == CellState::kDamaged) return status;
  const training::RunFolder folder{cell.folder};
  status.steps = cell.record.steps;
  if (is_at_work(cell)) {
    status.state = CellState::kRunning;
    status.pace = last_pace(folder.metrics());
    if (status.pace) status.steps = std::max(status.steps, status.pace->step);
  } else if (status.is_submitted &&
             (cell.state == CellState::kWaiting || cell.state == CellState::kLeftOut)) {
    status.state = CellState::kQueued;
  } else if (status.state == CellState::kRunning) {
    status.state = CellState::kInterrupted;
  }
  return status;
}

// Steps per second at the present pace; 0: unknown.
double speed_of(const CellStatus& s) {
  const RunRecord& record = s.cell->record;
  if (!s.pace || record.tokens == 0) return 0;
  return s.pace->tokens_per_s * static_cast<double>(record.steps) /
         static_cast<double>(record.tokens);
}

// Time to the last step; the tests at the end are not counted.
std::string time_left(const CellStatus& s) {
  const double speed = speed_of(s);
  if (speed <= 0 || !s.planned_steps) return "-";
  return human_duration(static_cast<double>(*s.planned_steps - s.steps) / speed);
}

std::string accuracy(const std::optional<Evaluation>& e) {
  return e ? percent(e->accuracy) : std::string("-");
}

TextTable table_of(const std::vector<CellStatus>& all) {
  const bool is_sweep = !all.empty() && !all[0].cell->attempt.text.empty();
  std::vector<std::string> header = {"task", "model",    "seed", "state",      "steps",
                                     "loss", "tokens/s", "left", "validation", "test"};
  if (is_sweep) header.insert(header.begin() + 2, "settings");
  TextTable table(header);
  for (const CellStatus& s : all) {
    std::vector<std::string> row = {
        s.cell->task,
        s.cell->model,
        std::to_string(s.cell->seed),
        to_string(s.state),
        std::to_string(s.steps) + "/" + (s.planned_steps ? std::to_string(*s.planned_steps) : "?"),
        s.pace ? fixed(s.pace->loss, 3) : "-",
        s.pace ? thousands(static_cast<int64_t>(s.pace->tokens_per_s)) : "-",
        time_left(s),
        accuracy(s.cell->record.val),
        accuracy(s.cell->record.test)};
    if (is_sweep) row.insert(row.begin() + 2, s.cell->attempt.text);
    table.add_row(row);
  }
  return table;
}

// Returns what is wrong with a cell, why its run failed or why it is left out; empty if none of
// them.
std::string problem_of(const CellStatus& s) {
  const Cell& cell = *s.cell;
  // Left out by the file, but submitted, or run by name.
  if (cell.state == CellState::kLeftOut && s.state != CellState::kLeftOut) return "";
  return cell.problem.empty() ? cell.record.failure : cell.problem;
}

// A line for each problem, and for each reason for which runs are left out.
std::string problems_of(const std::vector<CellStatus>& all) {
  std::string text;
  std::vector<std::pair<std::string, std::string>> left_out;  // reason, runs
  for (const CellStatus& s : all) {
    const std::string problem = problem_of(s);
    if (s.state == CellState::kLeftOut) {
      auto known = std::ranges::find(left_out, problem, &decltype(left_out)::value_type::first);
      if (known == left_out.end()) known = left_out.insert(known, {problem, ""});
      known->second += (known->second.empty() ? "" : ", ") + s.cell->run_name();
    } else if (!problem.empty()) {
      text += s.cell->run_name() + ": " + problem + "\n";
    }
  }
  for (const auto& [reason, runs] : left_out) text += "left out: " + reason + " (" + runs + ")\n";
  return text;
}

Json json_of(const std::vector<CellStatus>& all) {
  Json rows = Json::array();
  for (const CellStatus& s : all) {
    const RunRecord& record = s.cell->record;
    Json row = {{"task", s.cell->task}, {"model", s.cell->model},
                {"seed", s.cell->seed}, {"state", to_string(s.state)},
                {"steps", s.steps},     {"folder", s.cell->folder}};
    if (!s.cell->attempt.text.empty()) row["settings"] = s.cell->attempt.text;
    if (s.planned_steps) row["planned_steps"] = *s.planned_steps;
    const std::string problem = problem_of(s);
    if (!problem.empty()) row[s.state == CellState::kLeftOut ? "reason" : "problem"] = problem;
    if (record.val) row["validation_accuracy"] = record.val->accuracy;
    if (record.test) row["test_accuracy"] = record.test->accuracy;
    rows.push_back(std::move(row));
  }
  return rows;
}

// A submitted run that was preempted begins again; a cancellation leaves no trace in a folder.
bool is_open(const CellStatus& s, bool suite_is_at_work) {
  if (s.state == CellState::kRunning || s.state == CellState::kQueued) return true;
  if (s.state == CellState::kWaiting) return suite_is_at_work;
  return s.is_submitted && (s.state == CellState::kStopped || s.state == CellState::kInterrupted);
}

// Reloads all cells; `cells` keeps the objects that the statuses point at.
std::vector<CellStatus> statuses(const Suite& suite, const std::string& out,
                                 std::vector<Cell>& cells) {
  cells = cells_of(suite, out, training::data_root(""));
  if (suite.sweep) plan_sweep(suite, cells);
  std::vector<CellStatus> all;
  const std::set<std::string> submitted = submitted_runs(out);
  for (const Cell& cell : cells) all.push_back(status_of(cell, submitted));
  return all;
}

// As many rows as the terminal has room for.
void draw_dashboard(std::vector<CellStatus> all) {
  const std::string counts = counts_text(all);
  const std::string problems = problems_of(all);
  const size_t others = 6 + static_cast<size_t>(std::ranges::count(problems, '\n'));
  const size_t room = std::max<size_t>(window_size(STDOUT_FILENO).ws_row, others + 1) - others;
  std::ranges::stable_sort(all, {}, &CellStatus::state);
  const size_t hidden = all.size() - std::min(room, all.size());
  all.resize(all.size() - hidden);
  const std::string text = counts + "\n\n" + table_of(all).text() +
                           (hidden > 0 ? "and " + std::to_string(hidden) + " more\n" : "") +
                           problems;
  // Home, each line cleared to its end as it is drawn, then the rest of the screen: no flicker.
  std::string lines = "\x1b[H";
  for (const char c : text) lines += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
  std::printf("%s\x1b[J", lines.c_str());
}

}  // namespace

void show_cells(const Suite& suite, const std::string& out, bool json) {
  std::vector<Cell> cells;
  const std::vector<CellStatus> all = statuses(suite, out, cells);
  if (json) {
    print_json(json_of(all));
  } else {
    std::printf("%s%s", table_of(all).text().c_str(), problems_of(all).c_str());
  }
}

ExitCode watch_cells(const Suite& suite, const std::string& out) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  for (;;) {
    std::vector<Cell> cells;
    const bool suite_is_at_work = is_locked(suite_lock(out));
    const std::vector<CellStatus> all = statuses(suite, out, cells);
    if (terminal) {
      draw_dashboard(all);
    } else {
      std::printf("%s%s\n%s\n", table_of(all).text().c_str(), problems_of(all).c_str(),
                  counts_text(all).c_str());
    }
    std::fflush(stdout);
    const bool is_over = std::ranges::none_of(
        all, [&](const CellStatus& s) { return is_open(s, suite_is_at_work); });
    if (is_over) return ExitCode::kDone;
    const auto until = std::chrono::steady_clock::now() + kRedraw;
    while (std::chrono::steady_clock::now() < until) {
      if (stop_requested()) return ExitCode::kDone;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

}  // namespace lra::cli

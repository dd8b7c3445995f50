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
#include "cli/suite.h"
#include "cli/terminal.h"
#include "io/lock_file.h"
#include "training/settings/data_root.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

constexpr auto kRedraw = std::chrono::seconds(2);

struct CellStatus : Cell {
  bool is_submitted = false;
  int64_t steps = 0;
  std::optional<int64_t> planned = {};  // steps; unknown before a run whose budget is in examples
  std::optional<Pace> pace = {};
};

CellStatus status_of(Cell cell, const std::set<std::string>& submitted) {
  CellStatus s{std::move(cell)};
  s.is_submitted = submitted.contains(s.run_name());
  s.planned = planned_steps(s);
  if (s.state == CellState::kDamaged) return s;
  s.steps = s.record.steps;
  const bool is_left_out = s.state == CellState::kLeftOut;
  if (is_at_work(s)) {
    s.state = CellState::kRunning;
    s.pace = last_pace(training::RunFolder{s.folder}.metrics());
    if (s.pace) s.steps = std::max(s.steps, s.pace->step);
  } else if (s.is_submitted && (is_left_out || s.state == CellState::kWaiting)) {
    s.state = CellState::kQueued;
  } else if (s.state == CellState::kRunning) {
    s.state = CellState::kInterrupted;
  }
  // Left out by the file, but submitted, or run by name.
  if (is_left_out && s.state != CellState::kLeftOut) s.problem = s.record.failure = "";
  return s;
}

// Time to the last step at the present pace; the tests at the end are not counted.
std::string time_left(const CellStatus& s) {
  if (!s.pace || s.record.tokens == 0 || !s.planned) return "-";
  const double speed = s.pace->tokens_per_s * static_cast<double>(s.record.steps) /
                       static_cast<double>(s.record.tokens);
  if (speed <= 0) return "-";
  return human_duration(static_cast<double>(*s.planned - s.steps) / speed);
}

std::string accuracy(const std::optional<Evaluation>& e) {
  return e ? percent(e->accuracy) : std::string("-");
}

TextTable table_of(const std::vector<CellStatus>& all) {
  const bool is_sweep = !all.empty() && !all[0].attempt.text.empty();
  std::vector<std::string> header = {"task", "model",    "seed", "state",      "steps",
                                     "loss", "tokens/s", "left", "validation", "test"};
  if (is_sweep) header.insert(header.begin() + 2, "settings");
  TextTable table(header);
  for (const CellStatus& s : all) {
    std::vector<std::string> row = {
        s.task,
        s.model,
        std::to_string(s.seed),
        to_string(s.state),
        std::to_string(s.steps) + "/" + (s.planned ? std::to_string(*s.planned) : "?"),
        s.pace ? fixed(s.pace->loss, 3) : "-",
        s.pace ? thousands(static_cast<int64_t>(s.pace->tokens_per_s)) : "-",
        time_left(s),
        accuracy(s.record.val),
        accuracy(s.record.test)};
    if (is_sweep) row.insert(row.begin() + 2, s.attempt.text);
    table.add_row(row);
  }
  return table;
}

// Returns what is wrong with a cell, why its run failed or why it is left out; empty if none of
// them.
const std::string& problem_of(const Cell& cell) {
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
      known->second += (known->second.empty() ? "" : ", ") + s.run_name();
    } else if (!problem.empty()) {
      text += s.run_name() + ": " + problem + "\n";
    }
  }
  for (const auto& [reason, runs] : left_out) text += "left out: " + reason + " (" + runs + ")\n";
  return text;
}

Json json_of(const std::vector<CellStatus>& all) {
  Json rows = Json::array();
  for (const CellStatus& s : all) {
    Json row = {{"task", s.task},   {"model", s.model},
                {"seed", s.seed},   {"state", to_string(s.state)},
                {"steps", s.steps}, {"folder", s.folder}};
    if (!s.attempt.text.empty()) row["settings"] = s.attempt.text;
    if (s.planned) row["planned_steps"] = *s.planned;
    const std::string problem = problem_of(s);
    if (!problem.empty()) row[s.state == CellState::kLeftOut ? "reason" : "problem"] = problem;
    if (s.record.val) row["validation_accuracy"] = s.record.val->accuracy;
    if (s.record.test) row["test_accuracy"] = s.record.test->accuracy;
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

std::vector<CellStatus> statuses(const Suite& suite) {
  std::vector<Cell> cells = cells_of(suite, training::data_root(""));
  if (suite.sweep) plan_sweep(suite, cells);
  std::vector<CellStatus> all;
  const std::set<std::string> submitted = submitted_runs(suite.folder);
  for (Cell& cell : cells) all.push_back(status_of(std::move(cell), submitted));
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

std::string text_of(const std::vector<CellStatus>& all) {
  return table_of(all).text() + problems_of(all);
}

ExitCode watch(const Suite& suite) {
  const bool terminal = ::isatty(STDOUT_FILENO) != 0;
  for (;;) {
    const bool suite_is_at_work = is_locked(suite.lock());
    const std::vector<CellStatus> all = statuses(suite);
    if (terminal) {
      draw_dashboard(all);
    } else {
      std::printf("%s\n%s\n", text_of(all).c_str(), counts_text(all).c_str());
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

}  // namespace

ExitCode show_suite(const Program& program, const SuiteArguments& a) {
  const Suite suite = read_suite(a.file, a.out);
  if (a.watch && program.common.json) {
    refuse("suite status", "--watch and --json exclude each other", "one of them", "leave one out");
  }
  if (a.watch) return watch(suite);
  const std::vector<CellStatus> all = statuses(suite);
  return print_result(program, json_of(all), text_of(all));
}

}  // namespace lra::cli

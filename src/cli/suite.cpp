// lra suite: many runs (tasks x models x seeds), each in its own process; done ones are skipped, a
// failed one is recorded and the rest finished; then speed and memory; then the leaderboard and the
// report.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "base/command_text.h"
#include "base/stop_flag.h"
#include "cli/child_process.h"
#include "cli/compute.h"
#include "cli/device.h"
#include "cli/suite.h"
#include "cli/terminal.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "report/lists.h"
#include "report/report.h"
#include "tasks/prepare_data.h"
#include "training/settings/data_root.h"
#include "training/settings/run_folder.h"

namespace lra::cli {
namespace {

// Data of every task first, so that a missing one is known before hours are spent.
void prepare_tasks(std::vector<Cell>& cells, const std::string& data, const Program& program) {
  mark_without_data(cells, data, program);
  std::set<std::string> prepared;
  for (const Cell& cell : cells) {
    if (is_skipped(cell) || !prepared.insert(cell.task).second) continue;
    const Dataset dataset = tasks::prepare_data(cell.config.task_spec(), *cell.config.make_task(),
                                                data, program.common.quiet);
    refuse_other_data(cells, cell.task, dataset.hash());
  }
}

// True if the record holds every measurement that the suite asks for, made with the same settings
// on such a device.
bool is_measured(const BenchArguments& a, const std::string& model, const std::string& device) {
  const std::string path = record_folder(a, model) + "/record.json";
  if (!std::filesystem::exists(path)) return false;
  const RunRecord record = read_record(path);
  const auto config = config_of(a, model, a.lengths.front());
  if (record.status != RunStatus::kDone || record.provenance.device != device_title(device) ||
      canonical_text(record.config) != canonical_text(config.to_table())) {
    return false;
  }
  return std::ranges::all_of(a.lengths, [&](int64_t length) {
    return std::ranges::any_of(record.measurements, [&](const Measurement& m) {
      return m.length == length && m.batch == a.batch && m.windows == a.windows;
    });
  });
}

// Measures the models that have no complete measurement. Returns the code to end with.
ExitCode run_bench(const Suite& suite, const Program& program) {
  BenchArguments a = *suite.bench;
  a.replace = true;
  std::erase_if(a.models, [&](const std::string& model) {
    return is_measured(*suite.bench, model, program.common.device);
  });
  if (a.models.empty()) return ExitCode::kDone;
  say(program, "speed and memory of the " + a.preset + " " + a.task + " model, batch " +
                   std::to_string(a.batch));
  const int exit_code = run_self(bench_words(a, program.common)).exit_code;
  if (exit_code == 0 || stop_requested()) return ExitCode::kDone;
  std::fprintf(stderr, "lra: the measurements ended with %s\n", describe_end(exit_code).c_str());
  return failure_code(exit_code);
}

// The folders of the suite's runs and measurements, without links.
std::set<std::filesystem::path> own_folders(const Suite& suite, const std::vector<Cell>& cells) {
  std::set<std::filesystem::path> folders;
  for (const Cell& cell : cells)
    if (!suite.sweep || cell.is_chosen)
      folders.insert(std::filesystem::weakly_canonical(cell.folder));
  if (!suite.bench) return folders;
  for (const std::string& model : suite.models) {
    folders.insert(std::filesystem::weakly_canonical(record_folder(*suite.bench, model)));
  }
  return folders;
}

// A leaderboard of the suite alone: other runs in its folder are named and left out.
void write_reports(const Suite& suite, const std::vector<Cell>& cells, const Program& program) {
  const std::string& out = suite.folder;
  report::ReportOptions options{.title = "Long Range Arena: suite " + suite.settings.name};
  options.literature = published_results();
  const auto own = own_folders(suite, cells);
  std::vector<std::string> files;
  const std::string tries = std::filesystem::weakly_canonical(out + "/" + kTriesFolder).string();
  for (const std::string& path : report::find_record_files({out}, &options.problems, true)) {
    if (own.contains(std::filesystem::path(path).parent_path())) {
      files.push_back(path);
    } else if (!suite.sweep || !path.starts_with(tries + "/")) {
      options.problems.push_back(path + ": left out; it is not a run of this suite");
      say(program, options.problems.back());
    }
  }
  const auto records = report::collect_records(files, &options.problems);
  for (const auto& [name, format] : {std::pair{"report.html", report::Format::kHtml},
                                     std::pair{"report.md", report::Format::kMarkdown}}) {
    write_file_atomically(out + "/" + name, report::render(records, format, options));
  }
  options.color = shows_color();
  options.braille = shows_utf8();
  const auto format = program.common.json ? report::Format::kJson : report::Format::kSummary;
  std::printf("%s", report::render(records, format, options).c_str());
  if (!program.common.json) std::printf("\nreport: %s/report.html\n", out.c_str());
}

// A sweep chooses nothing before every setting has been compared.
void say_why_no_run(const Suite& suite, const std::string& file, const std::vector<Cell>& cells,
                    const Program& program) {
  if (!suite.sweep || std::ranges::all_of(cells, is_skipped)) {
    return say(program, "no run to report");
  }
  if (!program.common.json) std::printf("%s\n", sweep_table(suite, cells).c_str());
  say(program,
      "no setting is chosen, because some were not compared; mend what failed or take it "
      "out of [sweep] in " +
          file + ", then: " + command_text({"suite", "run", file, "--out", suite.folder}));
}

Cell cell_named(const std::vector<Cell>& cells, const std::string& name) {
  const auto found = std::ranges::find(cells, name, &Cell::run_name);
  if (found != cells.end()) return *found;
  refuse("--only", "the suite has no run '" + name + "'", "TASK-MODEL-sSEED",
         suggestion(name, report::mapped(cells, &Cell::run_name)));
}

// The lock of the run's folder is enough: others work on other runs of the suite.
ExitCode run_one(Cell cell, const std::string& data, const std::vector<std::string>& places,
                 const Program& program) {
  std::vector<Cell> cells = {std::move(cell)};
  prepare_tasks(cells, data, program);
  Cell& one = cells.front();
  run_cells({&one}, data, places, program);
  if (has_reached_goal(one)) one.state = CellState::kTried;
  if (program.common.json) {
    print_json({{"run", one.run_name()}, {"state", to_string(one.state)}, {"folder", one.folder}});
  }
  if (stop_requested() && one.state != CellState::kDone) return ExitCode::kStopped;
  return one.state == CellState::kNoData ? ExitCode::kUserError : judge_cells(cells);
}

// The devices of the runs that train at the same time.
std::vector<std::string> places_for(const SuiteArguments& a, const Program& program) {
  if (!a.only.empty()) return {program.common.device};
  std::vector<std::string> devices = a.devices;
  if (devices.empty()) devices = {program.common.device};
  for (std::string& device : devices) device = find_device(device);
  return places_of(devices, a.jobs);
}

}  // namespace

ExitCode run_suite(const Program& program, const SuiteArguments& a) {
  std::signal(SIGPIPE, SIG_IGN);  // as in lra train
  refuse_ranks();
  Suite suite = read_suite(a.file, a.out);
  if (a.all || !a.only.empty()) suite.left_out.clear();
  const std::vector<std::string> places = places_for(a, program);
  const std::string& out = suite.folder;
  const std::string data = training::data_root(a.data);
  std::vector<Cell> cells = cells_of(suite, data);
  if (suite.sweep) plan_sweep(suite, cells);  // refuses before anything is written
  std::optional<Cell> one;
  if (!a.only.empty()) one = cell_named(cells, a.only);
  need_tensors();
  make_folder(out);
  if (one) return run_one(*one, data, places, program);
  const FileLock lock(suite.lock(), "the suite folder " + out);
  prepare_tasks(cells, data, program);
  const auto train = [&](const std::vector<Cell*>& some) {
    run_cells(some, data, places, program);
  };
  std::vector<Cell*> all;
  for (Cell& cell : cells) all.push_back(&cell);
  suite.sweep ? run_sweep(suite, cells, train) : train(all);
  ExitCode measured = ExitCode::kDone;
  if (!stop_requested() && suite.bench) measured = run_bench(suite, program);
  if (stop_requested()) {
    say(program, "stopped; re-run the same command to resume");
    return ExitCode::kStopped;
  }
  const bool has_runs = std::ranges::any_of(cells, [&](const Cell& cell) {
    return (!suite.sweep || cell.is_chosen) &&
           std::filesystem::exists(training::RunFolder{cell.folder}.record());
  });
  if (!has_runs && !suite.bench) {
    say_why_no_run(suite, a.file, cells, program);
    return judge_cells(cells);
  }
  write_reports(suite, cells, program);
  if (suite.sweep && !program.common.json) {
    std::printf("\n%s\nruns that were not chosen: %s/%s\n", sweep_table(suite, cells).c_str(),
                out.c_str(), kTriesFolder);
  }
  const ExitCode trained = judge_cells(cells);
  return trained == ExitCode::kDone ? measured : trained;
}

void add_suite_options(CLI::App& command, SuiteArguments& a, CommonOptions& common) {
  command.add_option("--out", a.out, kRunsHelp);
  add_data_option(command, a.data);
  command
      .add_option("--jobs", a.jobs,
                  "runs trained at the same time, each with its share of the cores (default: one "
                  "for each device)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--devices", a.devices,
                  "DEVICE[,DEVICE]: train on several, each run on one that has the fewest")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes("--device")
      ->each([&common, is_first = true](const std::string& device) mutable {
        if (std::exchange(is_first, false)) common.device = device;
      });
}

void add_suite(CLI::App& app, Program& program) {
  CLI::App* suite =
      add_group(app, "suite", "run many models on many tasks, or show their progress");
  auto a = std::make_shared<SuiteArguments>();
  const auto add = [&](const char* name, const char* help,
                       ExitCode (*verb)(const Program&, const SuiteArguments&)) {
    auto* command =
        add_command(*suite, program, name, help, [&program, a, verb] { return verb(program, *a); });
    command->add_option("file", a->file, "a suite (configs/suites/*.toml)")->required();
    return command;
  };
  auto* run_command =
      add("run", "train unfinished runs, measure speed, print the leaderboard", run_suite);
  add_suite_options(*run_command, *a, program.common);
  run_command->add_flag("--all", a->all, kAllHelp);
  run_command->add_option("--only", a->only,
                          "only this run, by the name of its folder (TASK-MODEL-sSEED): what each "
                          "task of a job array runs");
  add_submit_options(*add("submit", "submit unfinished runs to SLURM", submit_suite), *a);
  auto* status_command = add("status", "print one line per run", show_suite);
  status_command->add_option("--out", a->out, kRunsHelp);
  status_command->add_flag("--watch", a->watch,
                           "redraw the table every two seconds until all runs have ended");
}

}  // namespace lra::cli

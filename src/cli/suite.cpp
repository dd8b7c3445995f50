// lra suite: many runs (tasks x models x seeds), each a process of its own; done ones are skipped,
// a failed one is recorded and the rest finished; then speed and memory; then the leaderboard and
// the report.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/child_process.h"
#include "cli/command.h"
#include "mixers/all.h"
#include "report/report.h"
#include "training/prepare_data.h"
#include "training/run_config.h"
#include "training/run_folder.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

struct SuiteArguments {
  std::string file, data, out;
};

struct SuiteSettings {
  std::string name, preset = "small";
  void fields(auto& f) {
    f("name", name, "name of the suite; its runs lie in runs/NAME");
    f("preset", preset, "preset of every run");
  }
};

struct SuiteBench {
  int64_t batch = 4, windows = 5;
  std::string task = "text", preset = "release";
  double window_seconds = 0.5;
  void fields(auto& f) {
    f("task", task, "task whose model is measured");
    f("preset", preset, "preset that is measured");
    f("batch", batch, "sequences per step", at_least(1));
    f("windows", windows, "timed windows; the median counts", at_least(1));
    f("window_seconds", window_seconds, "least length of a window", at_least(0));
  }
};

struct Suite {
  SuiteSettings settings;
  std::vector<std::string> tasks, models;
  std::vector<int64_t> seeds;
  ConfigTable common;                          // [set]: for every run
  std::map<std::string, ConfigTable> by_task;  // [listops.train] and the like
  std::optional<SuiteBench> bench;
  std::vector<int64_t> bench_lengths;
};

struct Cell {
  std::string task, model, folder;
  uint64_t seed = 0;
  training::RunConfig config;
  std::string state;  // "done", "stopped", "failed", "waiting", "no data"
};

template <typename T>
std::vector<T> take_list(ConfigTable& table, const char* key, const std::string& file) {
  const ConfigValue* found = table.find(key);
  if (!found)
    throw Error({.where = file,
                 .what = std::string("'") + key + "' is missing",
                 .expected = "a list",
                 .advice = ""});
  const auto* list = std::get_if<ConfigList>(&found->value);
  if (!list || list->empty()) {
    throw Error({.where = found->where,
                 .what = std::string(key) + " is not a list with entries",
                 .expected = "",
                 .advice = ""});
  }
  std::vector<T> values;
  for (const ConfigValue& item : *list) {
    const T* value = std::get_if<T>(&item.value);
    if (!value)
      throw Error({.where = item.where,
                   .what = std::string("an entry of ") + key + " has the wrong type",
                   .expected = "",
                   .advice = ""});
    values.push_back(*value);
  }
  table.erase(key);
  return values;
}

ConfigTable take_table(ConfigTable& table, const std::string& key) {
  const ConfigTable taken = table.table(key);
  table.erase(key);
  return taken;
}

Suite read_suite(const std::string& file) {
  ConfigTable table = parse_toml_file(file);
  Suite suite;
  suite.tasks = take_list<std::string>(table, "tasks", file);
  suite.models = take_list<std::string>(table, "models", file);
  suite.seeds = take_list<int64_t>(table, "seeds", file);
  if (suite.models == std::vector<std::string>{"all"}) suite.models = mixers::mixer_names();
  suite.common = take_table(table, "set");
  for (const std::string& task : suite.tasks) suite.by_task[task] = take_table(table, task);
  if (table.find("bench")) {
    ConfigTable bench = take_table(table, "bench");
    suite.bench_lengths = take_list<int64_t>(bench, "lengths", file);
    suite.bench = read_config<SuiteBench>(bench, "bench");
  }
  suite.settings = read_config<SuiteSettings>(table, "");
  if (suite.settings.name.empty()) suite.settings.name = fs::path(file).stem().string();
  return suite;
}

std::string out_folder(const Suite& suite, const SuiteArguments& a) {
  return a.out.empty() ? "runs/" + suite.settings.name : a.out;
}

std::string state_of(const Cell& cell) {
  const training::RunFolder folder{cell.folder};
  if (!fs::exists(folder.record())) return "waiting";
  const RunRecord record = read_record(folder.record());
  if (record.config_hash != to_hex(hash128(canonical_text(cell.config.to_table())))) {
    throw Error({.where = cell.folder,
                 .what = "the run there has other settings than the suite now asks for",
                 .expected = "",
                 .advice = "remove that folder, or choose another --out"});
  }
  return to_string(record.status);
}

std::vector<Cell> cells_of(const Suite& suite, const SuiteArguments& a) {
  std::vector<Cell> cells;
  for (const std::string& task : suite.tasks) {
    ConfigTable overrides = suite.common;
    merge(overrides, suite.by_task.at(task));
    for (const std::string& model : suite.models) {
      for (const int64_t seed : suite.seeds) {
        Cell cell{.task = task,
                  .model = model,
                  .folder = "",
                  .seed = static_cast<uint64_t>(seed),
                  .config = {},
                  .state = ""};
        cell.folder = out_folder(suite, a) + "/" + task + "-" + model + "-s" + std::to_string(seed);
        cell.config =
            training::resolve_run(task, model, suite.settings.preset, cell.seed, overrides, {});
        cell.state = state_of(cell);
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

void say(const Program& program, const std::string& text) {
  if (!program.common.quiet) std::fprintf(stderr, "%s\n", text.c_str());
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

std::vector<std::string> train_arguments(const Cell& cell, const std::string& data,
                                         const CommonOptions& common) {
  std::vector<std::string> words = {"train", "--json", "--data", data};
  if (cell.state == "stopped" || cell.state == "running") {
    words.insert(words.end(), {"--resume", cell.folder});
  } else {
    words.insert(words.end(), {cell.task, cell.model, "--preset", cell.config.preset, "--seed",
                               std::to_string(cell.seed), "--out", cell.folder});
    ConfigTable settings = cell.config.to_table();
    settings.erase("run");
    append_sets(settings, "", words);
  }
  if (common.quiet) words.push_back("--quiet");
  if (common.threads > 0) words.insert(words.end(), {"--threads", std::to_string(common.threads)});
  return words;
}

// A child that died leaves no record of its end; the report must know of it.
void record_failure(const Cell& cell, int exit_code, const Program& program) {
  const training::RunFolder folder{cell.folder};
  RunRecord record;
  if (fs::exists(folder.record())) record = read_record(folder.record());
  record.status = RunStatus::kFailed;
  record.failure = "ended with exit code " + std::to_string(exit_code);
  record.task = cell.task;
  record.model = cell.model;
  record.task_title = cell.config.task_spec().title;
  record.model_title = cell.config.mixer_spec().title;
  record.task_version = cell.config.task_spec().version;
  record.preset = cell.config.preset;
  record.seed = cell.seed;
  record.config = cell.config.to_table();
  record.config_hash = to_hex(hash128(canonical_text(record.config)));
  if (record.provenance.lra_version.empty()) record.provenance = program_provenance(program.common);
  make_folder(cell.folder);
  write_record(record, folder.record());
}

void remove_failed(const Cell& cell) {
  if (cell.state == "failed" || cell.state == "diverged") fs::remove_all(cell.folder);
}

// Data of every task first, so that a missing one is known before hours are spent.
void prepare_tasks(const Suite& suite, std::vector<Cell>& cells, const std::string& data,
                   const Program& program) {
  for (const std::string& task : suite.tasks) {
    const auto first =
        std::find_if(cells.begin(), cells.end(), [&](const Cell& c) { return c.task == task; });
    const auto& spec = first->config.task_spec();
    const auto made = first->config.make_task();
    if (training::data_available(spec, *made, data)) {
      (void)training::prepare_data(spec, *made, data, program.common.quiet);
      continue;
    }
    say(program, "note: there is no data for " + task + " under " + data +
                     ", so its runs are left out; get it with 'lra data import " + task +
                     " FROM --out " + data + "/" + task + "'");
    for (Cell& cell : cells) {
      if (cell.task == task) cell.state = "no data";
    }
  }
}

void run_cells(std::vector<Cell>& cells, const std::string& data, const Program& program) {
  size_t number = 0;
  for (Cell& cell : cells) {
    ++number;
    const std::string name = "[" + std::to_string(number) + "/" + std::to_string(cells.size()) +
                             "] " + cell.task + " " + cell.model + " seed " +
                             std::to_string(cell.seed);
    if (cell.state == "done" || cell.state == "no data") {
      say(program, name + ": " + cell.state);
      continue;
    }
    if (stop_requested()) return;
    say(program, name);
    remove_failed(cell);
    const ChildResult child = run_self(train_arguments(cell, data, program.common));
    const auto code = static_cast<ExitCode>(child.exit_code);
    cell.state = code == ExitCode::kDone       ? "done"
                 : code == ExitCode::kStopped  ? "stopped"
                 : code == ExitCode::kDiverged ? "diverged"
                                               : "failed";
    if (cell.state == "failed" && !stop_requested()) record_failure(cell, child.exit_code, program);
    if (cell.state != "done") say(program, name + ": " + cell.state);
  }
}

void run_bench(const Suite& suite, const std::string& out, const Program& program) {
  const SuiteBench& bench = *suite.bench;
  std::string lengths, models;
  for (const int64_t length : suite.bench_lengths)
    lengths += (lengths.empty() ? "" : ",") + std::to_string(length);
  for (const std::string& model : suite.models) models += (models.empty() ? "" : ",") + model;
  std::vector<std::string> words = {"bench",
                                    "--json",
                                    "--task",
                                    bench.task,
                                    "--preset",
                                    bench.preset,
                                    "--models",
                                    models,
                                    "--lengths",
                                    lengths,
                                    "--batch",
                                    std::to_string(bench.batch),
                                    "--windows",
                                    std::to_string(bench.windows),
                                    "--window-seconds",
                                    std::to_string(bench.window_seconds),
                                    "--out",
                                    out + "/bench"};
  if (program.common.quiet) words.push_back("--quiet");
  if (program.common.threads > 0)
    words.insert(words.end(), {"--threads", std::to_string(program.common.threads)});
  say(program, "speed and memory of the " + bench.preset + " " + bench.task + " model, batch " +
                   std::to_string(bench.batch));
  const ChildResult child = run_self(words);
  if (child.exit_code != 0)
    say(program, "the measurements ended with exit code " + std::to_string(child.exit_code));
}

bool bench_done(const Suite& suite, const std::string& out) {
  for (const std::string& model : suite.models) {
    if (!fs::exists(out + "/bench/" + suite.bench->task + "-" + model + "-train/record.json"))
      return false;
  }
  return true;
}

void write_reports(const Suite& suite, const std::string& out, const Program& program) {
  report::ReportOptions options{.title = "Long Range Arena: suite " + suite.settings.name};
  const auto records = report::collect_records({out}, &options.problems);
  for (const auto& [name, format] : {std::pair{"report.html", report::Format::kHtml},
                                     std::pair{"report.md", report::Format::kMarkdown}}) {
    write_file_atomically(out + "/" + name, report::render(records, format, options));
  }
  options.color = ::isatty(STDOUT_FILENO);
  const auto format = program.common.json ? report::Format::kJson : report::Format::kText;
  std::printf("%s", report::render(records, format, options).c_str());
  if (!program.common.json) std::printf("\nreport: %s/report.html\n", out.c_str());
}

ExitCode run(const Program& program, const SuiteArguments& a) {
  const Suite suite = read_suite(a.file);
  const std::string out = out_folder(suite, a), data = training::data_root(a.data);
  std::vector<Cell> cells = cells_of(suite, a);
  make_folder(out);
  const FileLock lock(out + "/.lock", "the suite folder " + out);
  prepare_tasks(suite, cells, data, program);
  run_cells(cells, data, program);
  if (!stop_requested() && suite.bench && !bench_done(suite, out)) run_bench(suite, out, program);
  if (stop_requested()) {
    say(program, "stopped; the same command goes on where this one ended");
    return ExitCode::kStopped;
  }
  write_reports(suite, out, program);
  const bool all_done = std::all_of(cells.begin(), cells.end(), [](const Cell& c) {
    return c.state == "done" || c.state == "no data";
  });
  return all_done ? ExitCode::kDone : ExitCode::kDiverged;
}

ExitCode status(const Program& program, const SuiteArguments& a) {
  const Suite suite = read_suite(a.file);
  TextTable table({"task", "model", "seed", "state", "steps", "validation", "test"});
  Json rows = Json::array();
  for (const Cell& cell : cells_of(suite, a)) {
    RunRecord record;
    if (cell.state != "waiting") record = read_record(training::RunFolder{cell.folder}.record());
    const auto accuracy = [](const std::optional<Evaluation>& e) {
      return e ? percent(e->accuracy) : std::string("-");
    };
    table.add_row({cell.task, cell.model, std::to_string(cell.seed), cell.state,
                   std::to_string(record.steps) + "/" + std::to_string(cell.config.train.steps),
                   accuracy(record.val), accuracy(record.test)});
    rows.push_back({{"task", cell.task},
                    {"model", cell.model},
                    {"seed", cell.seed},
                    {"state", cell.state},
                    {"steps", record.steps},
                    {"folder", cell.folder}});
  }
  if (program.common.json) {
    print_json(rows);
  } else {
    std::printf("%s", table.text().c_str());
  }
  return ExitCode::kDone;
}

}  // namespace

void add_suite(CLI::App& app, Program& program) {
  CLI::App* suite =
      app.add_subcommand("suite", "run many models on many tasks, or see how far they are");
  suite->require_subcommand(1);
  auto a = std::make_shared<SuiteArguments>();
  const auto add = [&](const char* name, const char* help,
                       ExitCode (*verb)(const Program&, const SuiteArguments&)) {
    auto* command =
        add_command(*suite, program, name, help, [&program, a, verb] { return verb(program, *a); });
    command->add_option("file", a->file, "a suite (configs/suites/*.toml)")->required();
    command->add_option("--out", a->out, "folder of the runs; default runs/NAME");
    return command;
  };
  add("run", "train what is not done, measure, print the leaderboard", run)
      ->add_option("--data", a->data, "folder of the data; default $LRA_DATA, else ./data");
  add("status", "one line per run", status);
}

}  // namespace lra::cli

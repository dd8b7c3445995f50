// lra suite submit.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <span>

#include "base/command_text.h"
#include "cli/child_process.h"
#include "cli/suite.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "training/settings/data_root.h"

namespace lra::cli {
namespace {

namespace fs = std::filesystem;

// SLURM numbers the tasks of an array below MaxArraySize, of which this is the default.
constexpr size_t kDefaultArraySize = 1001;

size_t max_array_size() {
  const ChildResult end = run_program({"scontrol", "show", "config"});
  const std::string key = "MaxArraySize";
  const size_t at = end.output.find(key), number = end.output.find_first_of("0123456789", at);
  if (end.exit_code != 0 || at == std::string::npos || number == std::string::npos) {
    refuse("scontrol show config", end.error.empty() ? "does not say " + key : end.error, "",
           "is the cluster reachable?");
  }
  return std::max<size_t>(1, std::stoull(end.output.substr(number)));
}

// The number of the job. `options`: of sbatch, before the script.
std::string submit_script(const std::string& script, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script);
  const ChildResult end = run_program(words);
  const std::string id = end.output.substr(0, end.output.find_first_of(";\n"));
  if (end.exit_code != 0 || id.empty()) {
    refuse("sbatch", end.error.empty() ? "printed no job number" : end.error, "",
           "the script is " + script);
  }
  return id;
}

// Names of the runs to submit. The `state` of every other cell gives the reason why it is left out.
std::vector<std::string> missing_runs(std::vector<Cell>& cells,
                                      const std::set<std::string>& queued) {
  std::vector<std::string> runs;
  for (Cell& cell : cells) {
    if (is_at_work(cell)) {
      cell.state = CellState::kRunning;
    } else if (is_due(cell) && queued.contains(cell.run_name())) {
      cell.state = CellState::kQueued;
    } else if (is_due(cell)) {
      runs.push_back(cell.run_name());
      cell.state = CellState::kToSubmit;
    }
  }
  return runs;
}

std::vector<SlurmArray> submit_runs(const std::vector<std::string>& runs, const SlurmJob& job,
                                    size_t array_size, bool dry_run) {
  std::vector<SlurmArray> all;
  for (size_t begin = 0; begin < runs.size(); begin += array_size) {
    const std::span<const std::string> rest = std::span(runs).subspan(begin);
    const auto some = rest.first(std::min(rest.size(), array_size));
    SlurmArray& array = all.emplace_back();
    array.runs = {some.begin(), some.end()};
    array.script = slurm_folder(job.out) + "/array-" + std::to_string(all.size()) + ".sbatch";
    write_file_atomically(array.script, slurm_script(job, array.runs));
    if (dry_run) continue;
    array.id = submit_script(array.script);
    write_array(job.out, array);
  }
  return all;
}

// After a run that failed or was cancelled the next round is not submitted: nothing repeats itself
// without end.
std::string submit_next_round(const SlurmJob& job, const std::vector<SlurmArray>& round,
                              const Program& program) {
  std::vector<std::string> words = job.program;
  words.insert(words.end(), program.common.argv.begin() + 1, program.common.argv.end());
  const std::string script = slurm_folder(job.out) + "/next-round.sbatch";
  write_file_atomically(script, next_round_script(job, words));
  std::string condition = "--dependency=afterok";
  for (const SlurmArray& s : round) condition += ":" + s.id;
  return submit_script(script, {condition, "--kill-on-invalid-dep=yes"});
}

void print_submissions(const std::vector<SlurmArray>& all, const std::vector<Cell>& cells,
                       const SlurmJob& job, const std::string& next_round, bool json) {
  if (json) {
    Json rows = Json::array();
    for (const SlurmArray& s : all) {
      rows.push_back(
          {{"job", s.id.empty() ? Json() : Json(s.id)}, {"script", s.script}, {"runs", s.runs}});
    }
    Json states = Json::object();
    for (const Cell& cell : cells) states[cell.run_name()] = to_string(cell.state);
    Json document = {{"submitted", rows}, {"runs", states}};
    if (!next_round.empty()) document["next_round"] = next_round;
    print_json(document);
    return;
  }
  std::printf("%zu runs: %s\n", cells.size(), counts_text(cells).c_str());
  for (const SlurmArray& s : all) {
    std::printf("%s: %zu runs, %s\n", s.id.empty() ? "not submitted" : ("job " + s.id).c_str(),
                s.runs.size(), s.script.c_str());
  }
  if (!next_round.empty()) {
    std::printf("job %s: submits the next round of the sweep, if all of these end well\n",
                next_round.c_str());
  }
  if (all.empty()) {
    std::printf("nothing to submit\n");
  } else if (all.front().id.empty()) {
    std::printf("submit it with    sbatch FILE, or without --dry-run\n");
  } else {
    std::printf("watch it with     %s\n",
                command_text({"suite", "status", job.suite, "--out", job.out, "--watch"}).c_str());
    std::printf("logs              %s/JOB_TASK.log\n", slurm_folder(job.out).c_str());
    std::printf(
        "once all are done %s\n",
        command_text({"suite", "run", job.suite, "--out", job.out, "--data", job.data}).c_str());
  }
}

std::string whole_path(const std::string& path) {
  return fs::absolute(path).lexically_normal().string();
}

// Not refused: a cluster may give GPUs by partition, and a CPU run may stand where only GPUs are.
void warn_of_other_device(const SlurmJob& job, const Program& program) {
  const bool asks = job.gres.find("gpu") != std::string::npos ||
                    std::ranges::any_of(job.more_options, [](const std::string& option) {
                      return option.starts_with("--gpus") || option.starts_with("--gres");
                    });
  const bool uses = job.device.starts_with("cuda");
  if (asks && !uses)
    say(program, "warning: the runs get GPUs and use the CPU; add --device cuda to use the GPUs");
  if (uses && !asks)
    say(program, "warning: --device " + job.device +
                     " without --gres, as in --gres gpu:1: the cluster may give no GPU");
}

}  // namespace

ExitCode submit_suite(const Program& program, const SuiteArguments& a) {
  Suite suite = read_suite(a.file, a.out);
  if (a.all) suite.left_out.clear();
  SlurmJob job = a.job;
  job.name = suite.settings.name;
  job.program = words_of_self(fs::read_symlink("/proc/self/exe").string());
  job.suite = whole_path(a.file);
  job.out = suite.folder = whole_path(suite.folder);
  job.data = whole_path(training::data_root(a.data));
  job.threads = program.common.threads > 0 ? program.common.threads : job.cpus;
  job.device = program.common.device;
  warn_of_other_device(job, program);
  const size_t array_size = a.dry_run ? kDefaultArraySize : max_array_size();
  std::vector<Cell> cells = cells_of(suite, job.data);
  mark_without_data(cells, job.data, program);
  (void)slurm_script(job, {"TASK-MODEL-s0"});  // refuses names before anything is written
  make_folder(slurm_folder(job.out));
  const FileLock lock(suite.lock(), "the suite folder " + job.out);
  if (suite.sweep) plan_sweep(suite, cells);
  if (suite.sweep && !a.dry_run) settle_choice(suite, cells);
  const std::set<std::string> queued = a.dry_run ? std::set<std::string>() : runs_in_queue(job.out);
  const std::vector<std::string> runs = missing_runs(cells, queued);
  const std::vector<SlurmArray> all = submit_runs(runs, job, array_size, a.dry_run);
  const bool has_next = suite.sweep && !a.dry_run && !all.empty();
  const std::string next = has_next ? submit_next_round(job, all, program) : "";
  print_submissions(all, cells, job, next, program.common.json);
  return ExitCode::kDone;
}

void add_submit_options(CLI::App& command, SuiteArguments& a) {
  command
      .add_flag("--slurm", a.slurm,
                "submit to SLURM, as a job array in which each array task is one run")
      ->required();
  command.add_flag("--dry-run", a.dry_run, "write the scripts, submit nothing");
  command.add_option("--out", a.out, kRunsHelp);
  add_data_option(command, a.data);
  command.add_flag("--all", a.all, kAllHelp);
  command.add_option("--partition", a.job.partition, "partition of the cluster");
  command.add_option("--account", a.job.account, "account to charge");
  command.add_option("--gres", a.job.gres,
                     "GPUs of each run, as in gpu:1 or gpu:h100:1; with --device cuda");
  command.add_option("--time", a.job.time,
                     "time limit of each run, as in 12:00:00; a run that needs more saves and is "
                     "queued again");
  command.add_option("--cpus", a.job.cpus, "CPUs for each run (default 1)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--array-limit", a.job.array_limit,
                  "how many runs of the array may run at the same time; default: no limit")
      ->check(count_range());
  command
      .add_option("--signal-seconds", a.job.signal_seconds,
                  "seconds before the time limit at which a run saves (default 60)")
      ->check(CLI::Range(1, 65535));
  command
      .add_option("--sbatch-arg", a.job.more_options,
                  "any other sbatch option; repeatable: --sbatch-arg=--mem=8G")
      ->take_all()
      ->allow_extra_args(false)
      ->check([](const std::string& word) -> std::string {
        return word.starts_with('-')
                   ? ""
                   : "'" + word + "' is not an option of sbatch; expected, for example, --mem=8G";
      });
}

}  // namespace lra::cli

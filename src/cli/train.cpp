// lra train: one run, or the rest of one.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/command_text.h"
#include "base/counted.h"
#include "base/launch_environment.h"
#include "base/quoted.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "cli/command.h"
#include "cli/usage.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "report/tables/settings.h"
#include "tasks/prepare_data.h"
#include "training/loop/trainer.h"
#include "training/ranks/process_group.h"
#include "training/run/data_root.h"
#include "training/run/fairness.h"
#include "training/run/loaded_run.h"
#include "training/run/stored_run.h"

namespace lra::cli {
namespace {

struct TrainArguments {
  std::string task, model, preset = "small", data, out, resume;
  uint64_t seed = 0;
  std::vector<std::string> sets;
  training::ProfileOptions profile;
  int64_t histogram_every = 0;
  int64_t rank_timeout_s = 600;
  int64_t memory_limit = INT64_MAX;
  int64_t stop_after = INT64_MAX;
  bool mlperf_log = false;
  bool no_test = false;
  bool go_on = false;
  std::string init_from;
  bool init_partial = false;
  std::vector<std::string> accept;
};

ExitCode exit_code(RunStatus status) {
  switch (status) {
    case RunStatus::kDone:
      return ExitCode::kDone;
    case RunStatus::kStopped:
      return ExitCode::kStopped;
    case RunStatus::kDiverged:
      return ExitCode::kDiverged;
    default:
      return ExitCode::kOurBug;
  }
}

// Data of another size than the preset's, and whether the settings ask for it.
std::string size_of_data(const RunRecord& r, const training::RunConfig& config) {
  if (!r.data_examples) return "";
  const std::string size = training::size_unlike_preset(config, *r.data_examples);
  const bool is_asked = training::size_unlike_task(config.task_settings, *r.data_examples).empty();
  return size.empty() || !is_asked ? size : size + ", as the settings request";
}

// The validation of the weights that were tested, else the last one.
std::optional<Evaluation> shown_validation(const RunRecord& r) {
  for (const Evaluation& e : r.val_curve) {
    if (r.test && e.step == r.test->step) return e;
  }
  return r.val;
}

std::string split_of_validation(const std::string& protocol) {
  if (protocol == "test") return "the test split itself, as the paper does";
  return protocol == "heldout" ? "a tenth of the training split, held out" : "its own split";
}

void print_results(const RunRecord& r) {
  if (r.test) {
    std::printf("  test accuracy  %s on %s, with the %s weights (step %s)\n",
                percent(r.test->accuracy).c_str(), examples_of(*r.test).c_str(),
                r.checkpoint.c_str(), thousands(r.test->step).c_str());
  }
  if (const auto validation = shown_validation(r)) {
    std::printf("  validation     %s at step %s, on %s\n", percent(validation->accuracy).c_str(),
                thousands(validation->step).c_str(), split_of_validation(r.validation).c_str());
  }
  for (const auto& [name, accuracy] : r.baselines) {
    std::printf("  baseline       %s on the test split: %s, a trivial classifier\n",
                percent(accuracy).c_str(), name.c_str());
  }
}

void print_summary(const RunRecord& r, const training::RunConfig& config, const std::string& folder,
                   const at::Device& device) {
  std::printf("%s on %s, preset %s, seed %llu: %s after %s of %s\n", r.model_title.c_str(),
              r.task_title.c_str(), r.preset.c_str(), static_cast<unsigned long long>(r.seed),
              to_string(r.status).c_str(), thousands(r.steps).c_str(),
              counted(r.planned_steps, "step").c_str());
  if (!r.failure.empty()) std::printf("  %s\n", r.failure.c_str());
  if (r.initial_weights) {
    std::printf("  began with     the weights of %s; %s drawn at random, %zu unused\n",
                r.initial_weights->origin.c_str(),
                counted(static_cast<int64_t>(r.initial_weights->fresh.size()), "tensor").c_str(),
                r.initial_weights->unused.size());
  }
  for (const EarlierPart& part : r.earlier_parts.value_or(std::vector<EarlierPart>()))
    std::printf("  continued      after step %s with %s\n", thousands(part.steps).c_str(),
                part.change.c_str());
  if (r.ended_by) std::printf("  ended early    %s\n", r.ended_by->c_str());
  if (r.skipped_steps)
    std::printf("  skipped        %s\n", counted(*r.skipped_steps, "bad step").c_str());
  if (r.roll_backs) {
    std::printf("  rolled back    %s, %s left out\n", counted(*r.roll_backs, "time").c_str(),
                counted(r.undone_steps.value_or(0), "step").c_str());
  }
  if (r.data_source == "generated")
    std::printf("  data           generated, not read from official files\n");
  if (const std::string size = size_of_data(r, config); !size.empty())
    std::printf("  size           %s\n", size.c_str());
  for (const std::string& warning : r.warnings.value_or(std::vector<std::string>()))
    std::printf("  warning        %s\n", warning.c_str());
  for (const CheckFinding& finding : r.data_checks.value_or(std::vector<CheckFinding>()))
    std::printf("  data           %s\n", printable(checks::text_of(finding)).c_str());
  print_results(r);
  std::printf("  speed          %s tokens/s, %s examples/s, peak memory %s, %s in all\n",
              thousands(static_cast<int64_t>(r.train_tokens_per_s)).c_str(),
              fixed(r.train_examples_per_s.value_or(0), 1).c_str(),
              human_bytes(static_cast<uint64_t>(peak_memory_bytes(r))).c_str(),
              human_duration(r.total_seconds).c_str());
  std::printf("  division       %s (%s): %s\n", r.division.c_str(),
              r.division == "free-for-all" ? "not like for like" : "like for like",
              r.division_reason.c_str());
  std::printf("  record         %s/record.json\n", folder.c_str());
  if (r.status == RunStatus::kStopped)
    std::printf("  resume with    %s\n", training::go_on_command({folder}, device).c_str());
}

// Settings, and for a resumed run how they differ from those of its steps so far.
training::ChangedRun requested_config(const TrainArguments& a) {
  if (!a.resume.empty()) {
    if (training::is_exported(a.resume)) {
      throw Error({.where = a.resume,
                   .what = "was written by lra export: it has weights, and nothing to resume",
                   .expected = "the folder of a run",
                   .advice = "start a new run with its weights: --init-from " + a.resume});
    }
    return training::with_changes(training::read_run({a.resume}), a.sets);
  }
  if (a.task.empty() || a.model.empty()) {
    throw Error({.where = "train",
                 .what = "task and model are missing",
                 .expected = "lra train TASK MODEL",
                 .advice = "list them with: " + command_text({"list"})});
  }
  return {.config = training::resolve_on_data(a.task, a.model, a.preset, a.seed,
                                              training::data_root(a.data), {}, a.sets)};
}

// The weights of a run that its test figure is of, or a model.safetensors.
std::string weights_file(const std::string& run_or_file) {
  const training::RunFolder folder{run_or_file};
  if (!std::filesystem::exists(folder.record())) {
    if (!std::filesystem::is_directory(run_or_file)) return run_or_file;
    const std::string file = run_or_file + "/model.safetensors";  // a folder of checkpoints has it
    if (std::filesystem::exists(file)) return file;
    throw Error({.where = run_or_file,
                 .what = "is a folder without record.json or model.safetensors",
                 .expected = "a run, a folder that lra export wrote, or a file of weights",
                 .advice = "name one of them with --init-from"});
  }
  const RunRecord record = read_consistent_record(folder.record());
  const std::string file =
      training::checkpoint_file(run_or_file, training::tested_checkpoint(record));
  training::refuse_other_weights(file, training::describe_weights(file, identities_of(record)),
                                 record);
  return file;
}

// `task`: with the name of its data.
std::string run_folder(const TrainArguments& a, const std::string& task) {
  if (!a.resume.empty()) return a.resume;
  if (!a.out.empty()) return a.out;
  return "runs/" + file_name_of(task) + "-" + file_name_of(a.model) + "-" + a.preset + "-s" +
         std::to_string(a.seed);
}

// A run that never began, for a bad setting or for want of data, leaves no folder behind.
class NewFolder {
 public:
  explicit NewFolder(const training::RunFolder& folder)
      : folder_(folder),
        is_new_(!std::filesystem::exists(folder.path)),
        has_new_parent_(!std::filesystem::exists(folder_of(folder.path))) {
    make_folder(folder.path);
  }
  ~NewFolder() {
    std::error_code ignored;  // the mistake itself is being reported
    if (!is_new_ || std::filesystem::exists(folder_.record(), ignored)) return;
    std::filesystem::remove_all(folder_.path, ignored);
    if (has_new_parent_) std::filesystem::remove(folder_of(folder_.path), ignored);  // if empty
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

 private:
  training::RunFolder folder_;
  bool is_new_, has_new_parent_;
};

// A new run requires a folder that is empty, or has only leftovers of a run with the same settings
// that was killed before it had a record.
void refuse_foreign_files(const training::RunFolder& folder, const std::string& config) {
  namespace fs = std::filesystem;
  for (const std::string& name : names_in(folder.path)) {
    const std::string path = folder.path + "/" + name;
    if (path == folder.lock() || path == folder.source() || name.starts_with(".config.toml.tmp.") ||
        name.starts_with(".record.json.tmp.")) {
      continue;
    }
    if (path == folder.checkpoints() && fs::is_directory(path) && names_in(path).empty()) continue;
    constexpr uint64_t kMaxBytes = uint64_t{1} << 20;
    if (path == folder.config() && fs::file_size(path) == config.size() &&
        read_file(path, kMaxBytes) == config) {
      continue;
    }
    throw Error({.where = folder.path,
                 .what = "is not a run folder and is not empty: it holds " + in_quotes(name, 100),
                 .expected = "an empty or new folder",
                 .advice = "choose another --out, or move its contents away"});
  }
}

// Checked before the lock is made, so that nothing is added to another user's folder; the owner of
// an existing lock may be writing.
std::string lock_of_new(const training::RunFolder& folder, const std::string& config) {
  const auto exists = [](const std::string& path) { return std::filesystem::exists(path); };
  if (!exists(folder.lock()) && !exists(folder.record())) refuse_foreign_files(folder, config);
  return folder.lock();
}

// Work of one process for all ranks: the run's folder, locked until the end.
struct OwnedFolder {
  OwnedFolder(const training::RunFolder& folder, bool resumes, bool goes_on,
              const training::RunConfig& config)
      : made(folder),
        lock(resumes ? folder.lock() : lock_of_new(folder, to_toml(config.to_table())),
             "the run folder " + folder.path) {
    const bool is_run = std::filesystem::exists(folder.record());
    if (!is_run && !resumes) refuse_foreign_files(folder, to_toml(config.to_table()));
    if (resumes || goes_on || !is_run) return;
    throw Error(
        {.where = folder.path,
         .what = "already holds a run (" + to_string(read_record(folder.record()).status) + ")",
         .advice = "choose another --out, or resume it with: " +
                   command_text({"train", "--resume", folder.path})});
  }
  NewFolder made;
  FileLock lock;
};

void refuse_other_settings(const training::RunFolder& folder, const training::RunConfig& config) {
  const RunRecord record = read_record(folder.record());
  if (record.config_hash == config_hash(config.to_table())) return;
  const report::SettingLines there = report::setting_lines(record.config),
                             here = report::setting_lines(config.to_table());
  std::vector<std::string> only_there, only_here;
  std::ranges::set_difference(there, here, std::back_inserter(only_there));
  std::ranges::set_difference(here, there, std::back_inserter(only_here));
  throw Error({.where = folder.path,
               .what = "already holds a run with other settings: " +
                       (only_here.empty() ? "another seed" : quoted_list(only_here)),
               .expected = only_there.empty() ? "" : quoted_list(only_there) + ", as there",
               .advice = "choose another --out"});
}

// A run that is done reads no data; that it was made with the data that is named now must be true.
void refuse_other_data(const Program& program, const TrainArguments& a,
                       const training::RunConfig& config, const training::RunFolder& folder,
                       const RunRecord& record) {
  const tasks::TaskSpec& spec = config.task_spec();
  const auto task = config.make_task();
  training::refuse_lost_data(spec, *task, a.data, record);
  if (!tasks::data_found(spec, *task, a.data)) return;  // it would be generated as it was
  const auto dataset =
      tasks::prepare_data(spec, *task, a.data, program.common.quiet, tasks::OtherSettings::kTaken);
  training::refuse_other_data(dataset, folder, record,
                              "the run is done: leave --data out to see its result");
}

// True if there is a run to resume. Rank 0 looks for all, before it writes.
bool take_folder(training::Ranks& ranks, std::optional<OwnedFolder>& owned, const TrainArguments& a,
                 const training::RunConfig& config, const training::RunFolder& folder) {
  double resumes = 0;
  ranks.on_first([&] {
    owned.emplace(folder, !a.resume.empty(), a.go_on, config);
    const bool has_run = a.go_on && std::filesystem::exists(folder.record());
    if (has_run) refuse_other_settings(folder, config);
    resumes = has_run || !a.resume.empty() ? 1 : 0;
  });
  ranks.sum({&resumes, 1});
  return resumes > 0;
}

RunRecord train_on(training::Ranks& ranks, const Program& program, const TrainArguments& a,
                   const training::ChangedRun& wanted, const training::RunFolder& folder) {
  const training::RunConfig& config = wanted.config;
  std::optional<OwnedFolder> owned;
  const bool resume = take_folder(ranks, owned, a, config, folder);
  if (resume && wanted.change.empty()) {
    RunRecord record = read_consistent_record(folder.record());
    if (record.status == RunStatus::kDone) {
      if (!a.data.empty()) refuse_other_data(program, a, config, folder, record);
      return record;
    }
  }
  training::PreparedRun run = training::prepare_run(
      config, folder,
      {.data_root = resume ? training::data_root_of(folder, a.data) : training::data_root(a.data),
       .device = program.common.device,
       .resume = resume,
       .change = wanted.change,
       .init_from = resume || a.init_from.empty() ? "" : weights_file(a.init_from),
       .init_partial = a.init_partial,
       .accept = a.accept,
       .quiet = program.common.quiet,
       .memory_limit = a.memory_limit,
       .provenance = program_provenance(program.common),
       .stop_after = a.stop_after,
       .stop_before_test = a.no_test,
       .histogram_every = a.histogram_every,
       .mlperf_log = a.mlperf_log,
       .profile = a.profile},
      ranks);
  return training::Trainer(std::move(run), ranks).run();
}

ExitCode train(const Program& program, TrainArguments arguments) {
  // A reader of the output may exit without ending the run.
  std::signal(SIGPIPE, SIG_IGN);
  const Launch launch = launch_of_this_process();
  // A launcher that starts the ranks again gives them the same command.
  refuse_swapped(arguments.task, arguments.model, program.common.argv);
  if (launch.restarts > 0 && arguments.resume.empty()) arguments.go_on = true;
  training::ChangedRun wanted = requested_config(arguments);
  const training::RunFolder folder{run_folder(arguments, wanted.config.task)};
  if (arguments.go_on && std::filesystem::exists(folder.record())) {
    wanted.config.initial_weights = training::read_run(folder).config.initial_weights;
  }
  const auto ranks = training::join_ranks(launch, std::chrono::seconds(arguments.rank_timeout_s));
  const RunRecord record = train_on(*ranks, program, arguments, wanted, folder);
  if (ranks->is_first()) {
    if (program.common.json) {
      std::printf("%s\n", to_json(record).c_str());
    } else {
      print_summary(record, wanted.config, folder.path, program.common.device);
    }
    std::fflush(stdout);
  }
  if (ranks->count() > 1) {
    // A launcher that sees one process end asks the others to stop: all end together.
    ranks->barrier();
    ignore_stop_signals();
  }
  return exit_code(record.status);
}

}  // namespace

void add_train(CLI::App& app, Program& program) {
  auto a = std::make_shared<TrainArguments>();
  auto* command = add_command(app, program, "train", "train, validate and test a model on a task",
                              [&program, a] { return train(program, *a); });
  auto* resume = command->add_option("--resume", a->resume, "resume the run in this folder");
  const auto option = [&](const char* name, auto& value, const char* help) {
    // A resumed run keeps the options it was started with.
    return command->add_option(name, value, help)->excludes(resume);
  };
  option("task", a->task, "a task (lra list tasks)");
  option("model", a->model, "a model (lra list models)");
  option("--preset", a->preset,
         "paper, release, small; published, pretraining or fine_tuning if the model has it "
         "(default small)");
  command->add_option("--data", a->data, "folder of the data; default $LRA_DATA, else ./data");
  command
      ->add_flag("--go-on", a->go_on,
                 "resume the run in the folder if it has these settings, otherwise start it; "
                 "for jobs that are re-run with the same command")
      ->excludes(resume);
  auto* init_from = option("--init-from", a->init_from,
                           "start with the weights of this run, or of a model.safetensors; the run "
                           "is then in the free-for-all division, or self-pretrained if they come "
                           "from a run with train.objective=masked "
                           "on the same data");
  command
      ->add_flag("--init-partial", a->init_partial,
                 "with --init-from: initialize at random the tensors that have no counterpart of "
                 "the same shape")
      ->needs(init_from);
  add_accept_option(*command, a->accept)->excludes(resume);
  option("--out", a->out, "run folder; default runs/TASK-MODEL-PRESET-sSEED");
  option("--seed", a->seed, "seed of weights, data order and dropout (default 0)")
      ->check(seed_range());
  command
      ->add_option("--histograms", a->histogram_every,
                   "steps between histograms of weights and gradients for TensorBoard")
      ->check(CLI::PositiveNumber);
  command->add_option("--profile", a->profile.path,
                      "write a trace of some steps for Perfetto or chrome://tracing");
  command->add_option("--profile-steps", a->profile.num_steps, "steps in the trace (default 5)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--rank-timeout", a->rank_timeout_s,
                   "seconds to wait for another rank of the same run, started by torchrun or "
                   "srun (default 600)")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--memory-limit", a->memory_limit,
                   "bytes that train.memory_check may assume, even if more are free: the rest is "
                   "left to other runs on this machine")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--stop-after", a->stop_after,
                   "stop after this step; the schedule does not change, and --resume continues")
      ->check(count_range());
  command->add_flag("--no-test", a->no_test,
                    "stop before the test: --resume makes it, 'lra tune' only for chosen settings");
  command->add_flag("--mlperf-log", a->mlperf_log, "write mllog.txt, a log in MLPerf's format");
  add_set_option(
      *command, a->sets,
      "KEY=VALUE: override a setting; repeatable. With --resume only settings of the training "
      "length, schedule, validations or checkpoints: the run continues with them");
}

}  // namespace lra::cli

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
#include "cli/compute.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "report/tables/settings.h"
#include "tasks/prepare_data.h"
#include "training/loop/trainer.h"
#include "training/ranks/nccl.h"
#include "training/settings/data_root.h"
#include "training/settings/weights_file.h"

namespace lra::cli {
namespace {

ExitCode exit_code(RunStatus status) {
  return status == RunStatus::kDone       ? ExitCode::kDone
         : status == RunStatus::kStopped  ? ExitCode::kStopped
         : status == RunStatus::kDiverged ? ExitCode::kDiverged
                                          : ExitCode::kOurBug;
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

void print_summary(const RunRecord& r, const std::string& folder, const at::Device& device) {
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
  for (const EarlierPart& part : items_of(r.earlier_parts))
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
  for (const std::string& warning : items_of(r.warnings))
    std::printf("  warning        %s\n", warning.c_str());
  for (const CheckFinding& finding : items_of(r.data_checks))
    std::printf("  data           %s\n", printable(checks::text_of(finding)).c_str());
  print_results(r);
  std::printf("  speed          %s tokens/s, %s examples/s, peak memory %s, %s in all\n",
              thousands(static_cast<int64_t>(r.train_tokens_per_s)).c_str(),
              fixed(r.train_examples_per_s.value_or(0), 1).c_str(),
              human_bytes(static_cast<uint64_t>(peak_memory_bytes(r))).c_str(),
              human_duration(r.total_seconds).c_str());
  std::printf("  division       %s%s: %s\n", r.division.c_str(),
              r.division == "diagnostic"     ? ""
              : r.division == "free-for-all" ? " (not like for like)"
                                             : " (like for like)",
              r.division_reason.c_str());
  std::printf("  record         %s/record.json\n", folder.c_str());
  if (r.status == RunStatus::kStopped)
    std::printf("  resume with    %s\n",
                training::go_on_command({folder}, device, r.provenance.ranks.value_or(1)).c_str());
}

// The weights of a run that its test figure is of, or a model.safetensors.
std::string weights_file(const std::string& run_or_file) {
  const training::RunFolder folder{run_or_file};
  if (!std::filesystem::exists(folder.record())) {
    if (!std::filesystem::is_directory(run_or_file)) return run_or_file;
    const std::string file = run_or_file + "/model.safetensors";  // a folder of checkpoints has it
    if (std::filesystem::exists(file)) return file;
    refuse(run_or_file, "is a folder without record.json or model.safetensors",
           "a run, a folder that lra export wrote, or a file of weights",
           "name one of them with --init-from");
  }
  const RunRecord record = read_consistent_record(folder.record());
  const std::string file =
      training::checkpoint_file(run_or_file, training::tested_checkpoint(record));
  training::refuse_other_weights(file, training::describe_weights(file, identities_of(record)),
                                 record);
  return file;
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
    refuse(folder.path, "is not a run folder and is not empty: it holds " + in_quotes(name, 100),
           "an empty or new folder", "choose another --out, or move its contents away");
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
    refuse(folder.path,
           "already holds a run (" + to_string(read_record(folder.record()).status) + ")", "",
           "choose another --out, or resume it with: " +
               command_text({"train", "--resume", folder.path}));
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
  std::string what = "already holds a run with other settings";
  if (!only_here.empty()) {
    what += ": " + quoted_list(only_here);
  } else if (only_there.empty()) {
    what = "already holds a run with another seed";
  }
  refuse(folder.path, what, only_there.empty() ? "" : quoted_list(only_there) + ", as there",
         "choose another --out");
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
    const RunRecord record = read_consistent_record(folder.record());
    if (record.status == RunStatus::kDone) {
      if (!a.data.empty()) refuse_other_data(program, a, config, folder, record);
      return record;
    }
  }
  training::PreparedRun run = training::prepare_run(
      config, folder,
      {.data_root = resume ? training::data_root_of(folder, a.data) : training::data_root(a.data),
       .device = at::Device(program.common.device),
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
       .profile = {.path = a.profile, .num_steps = a.profile_steps}},
      ranks);
  return training::Trainer(std::move(run), ranks).run();
}

}  // namespace

ExitCode train(const Program& program, const TrainArguments& a, training::ChangedRun wanted,
               const training::RunFolder& folder) {
  // A reader of the output may exit without ending the run.
  std::signal(SIGPIPE, SIG_IGN);
  if (a.go_on && std::filesystem::exists(folder.record())) {
    wanted.config.initial_weights = training::read_run(folder).config.initial_weights;
  }
  const at::Device device(program.common.device);
  const auto ranks = training::join_ranks(
      launch_of_this_process(), std::chrono::seconds(a.rank_timeout_s),
      a.rank_backend == "nccl" ? training::nccl_on(device) : training::OpenBackend());
  const RunRecord record = train_on(*ranks, program, a, wanted, folder);
  if (ranks->is_first()) {
    if (program.common.json) {
      std::printf("%s\n", to_json(record).c_str());
    } else {
      print_summary(record, folder.path, device);
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

RunRecord repeat(const Program& program, const RepeatedRun& run) {
  return training::Trainer(training::prepare_run(run.config, run.folder,
                                                 {.data_root = run.data_root,
                                                  .device = at::Device(program.common.device),
                                                  .resume = false,
                                                  .init_from = run.init_from,
                                                  .accept = run.accept,
                                                  .quiet = program.common.quiet,
                                                  .provenance = program_provenance(program.common),
                                                  .time_ends_after = run.time_ends_after,
                                                  .stop_after = run.stop_after}))
      .run();
}

}  // namespace lra::cli

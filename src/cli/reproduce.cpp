// lra reproduce: a recorded run again, and whether it gives the same bits.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/command_text.h"
#include "base/counted.h"
#include "base/text_format.h"
#include "cli/compute.h"
#include "data/new_folder.h"
#include "io/atomic_file.h"
#include "io/lock_file.h"
#include "io/mapped_file.h"
#include "records/check_record.h"
#include "records/record_comparison.h"
#include "tasks/prepare_data.h"
#include "training/settings/budget.h"
#include "training/settings/data_root.h"

namespace lra::cli {
namespace {

struct ReproduceArguments {
  std::string record, data, out;
  std::optional<int64_t> steps;
};

// The folder of the new run: the one requested, or one that is removed at the end.
class Place {
 public:
  explicit Place(const std::string& out) : folder_{out}, is_temporary_(out.empty()) {
    if (is_temporary_) {
      std::string pattern =
          (std::filesystem::temp_directory_path() / "lra-reproduce-XXXXXX").string();
      if (::mkdtemp(pattern.data()) == nullptr) throw io_error(pattern, "cannot be made", errno);
      folder_.path = pattern;
    } else {
      refuse_existing(out);
      make_folder(out);
    }
  }
  ~Place() {
    std::error_code ignored;  // the end of the command is being reported
    if (is_temporary_ || !std::filesystem::exists(folder_.record(), ignored)) {
      std::filesystem::remove_all(folder_.path, ignored);
    }
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const training::RunFolder& folder() const { return folder_; }

 private:
  training::RunFolder folder_;
  bool is_temporary_;
};

std::string record_file(const std::string& path) {
  return std::filesystem::is_directory(path) ? training::RunFolder{path}.record() : path;
}

// The run that the record describes, as far as this program can reproduce it.
training::RunConfig config_of(const RunRecord& record, const std::string& file) {
  if (record.kind != "train") {
    refuse(file, "is the record of a measurement (kind '" + record.kind + "')",
           "a record of lra train");
  }
  if (record.status != RunStatus::kDone) {
    refuse(file, "the run is " + to_string(record.status) + ", not done", "a finished run",
           record.status == RunStatus::kStopped
               ? "finish it with: " + command_text({"train", "--resume", folder_of(file)})
               : "");
  }
  if (record.earlier_parts) {
    refuse(file,
           "was trained further with other settings (" + record.earlier_parts->back().change + ")",
           "a run with one set of settings");
  }
  if (const int64_t ranks = record.provenance.ranks.value_or(1); ranks > 1) {
    refuse(file, "was made by " + std::to_string(ranks) + " processes", "a run of one process",
           "compare it with a second run of as many processes: their weights_hash is the same");
  }
  const training::RunConfig config = training::RunConfig::from_table(record.config);
  if (record.checkpoint == "best readable") {
    refuse(file,
           "its test used the " + record.checkpoint + " weights, because of a damaged checkpoint",
           "the " + config.train.test_checkpoint + " weights");
  }
  if (config.task_spec().version != record.task_version) {
    refuse(file,
           "was made with version " + std::to_string(record.task_version) + " of " + record.task,
           "version " + std::to_string(config.task_spec().version),
           "use the program of that record, " + record.provenance.git_revision);
  }
  return config;
}

// The clock would end the run elsewhere: its record states where it did, or that it did not.
int64_t time_ends_after(const RunRecord& record, const training::RunConfig& config) {
  if (config.train.max_seconds == 0) return 0;
  const bool by_time = record.ended_by && training::is_end_by_time(*record.ended_by);
  return by_time ? record.steps : record.planned_steps;
}

// The weights that the run began with, stored next to its record; empty if they were drawn.
std::string initial_weights(const RunRecord& record, const std::string& file) {
  if (!record.initial_weights) return "";
  const training::RunFolder folder{folder_of(file)};
  std::string weights = folder.checkpoints() + "/step_0/model.safetensors";
  if (std::filesystem::exists(weights)) return weights;
  refuse(weights, "the weights that the run began with are missing",
         "those of " + record.initial_weights->origin,
         "keep checkpoints/step_0 next to the record");
}

void check_data(const std::string& root, const RunRecord& record, const training::RunConfig& config,
                bool quiet) {
  const auto task = config.make_task();
  training::refuse_lost_data(config.task_spec(), *task, root, record);
  const Dataset dataset = tasks::prepare_data(config.task_spec(), *task, root, quiet);
  if (dataset.hash() == record.data_hash) return;
  refuse(dataset.folder(), "is not the data of the record, hash " + dataset.hash(),
         record.data_hash, "name the right folder with --data");
}

Json json_of(const std::vector<Compared>& rows) {
  Json list = Json::array();
  for (const Compared& row : rows) {
    list.push_back({{"what", row.what},
                    {"equal", row.is_equal()},
                    {"recorded", row.recorded},
                    {"now", row.now}});
  }
  return list;
}

void print_results(const std::vector<Compared>& rows) {
  for (const Compared& row : rows) {
    const std::string now = row.is_equal() ? "" : "; now " + row.now;
    std::printf("  %-8s %s: %s%s\n", row.is_equal() ? "equal" : "DIFFERS", row.what.c_str(),
                printable(row.recorded).c_str(), now.c_str());
  }
}

void print_circumstances(const std::vector<Compared>& rows, bool is_equal) {
  std::string list;
  for (const Compared& row : rows) {
    if (row.is_equal()) continue;
    list += "  " + row.what + ": " + printable(row.recorded) + "; now " + row.now + "\n";
  }
  if (list.empty()) {
    if (!is_equal) std::printf("program and machine match the record\n");
    return;
  }
  std::printf("%s:\n%s", is_equal ? "though these differ" : "likely because of what else differs",
              list.c_str());
}

// The metrics that a run logged; empty if the file is missing.
std::string log_of(const training::RunFolder& folder) {
  if (!std::filesystem::exists(folder.metrics())) return "";
  const MappedFile file(folder.metrics());
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void check_steps(int64_t steps, const RunRecord& recorded, const std::string& log) {
  if (steps >= recorded.steps) {
    refuse("--steps",
           "is " + std::to_string(steps) + ", and the run has " + counted(recorded.steps, "step"),
           "fewer steps than the run has", "leave --steps out to repeat the whole run");
  }
  if (compare_beginnings(recorded, recorded, log, log, steps).empty()) {
    refuse(
        "--steps", "nothing is recorded of the first " + counted(steps, "step"),
        "at least the step of the first validation" +
            (recorded.val_curve.empty() ? "" : ", " + std::to_string(recorded.val_curve[0].step)),
        "");
  }
}

// "3,000 steps" or "the first 1,000 of 3,000 steps"
std::string length_text(const RunRecord& recorded, std::optional<int64_t> steps) {
  const std::string all = counted(recorded.steps, "step");
  return steps ? "the first " + thousands(*steps) + " of " + all : all;
}

ExitCode report(const Program& program, const RunRecord& recorded, const RunRecord& now,
                const std::vector<Compared>& results, std::optional<int64_t> steps) {
  const auto circumstances = compare_circumstances(recorded.provenance, now.provenance);
  const bool is_equal = std::ranges::all_of(results, &Compared::is_equal);
  if (program.common.json) {
    print_json({{"equal", is_equal},
                {"task", recorded.task},
                {"model", recorded.model},
                {"seed", recorded.seed},
                {"steps", steps.value_or(recorded.steps)},
                {"results", json_of(results)},
                {"circumstances", json_of(circumstances)}});
  } else {
    std::printf("%s on %s, seed %llu, %s: %s\n", recorded.model_title.c_str(),
                recorded.task_title.c_str(), static_cast<unsigned long long>(recorded.seed),
                length_text(recorded, steps).c_str(),
                is_equal ? "reproduced bit for bit" : "not reproduced");
    print_results(results);
    print_circumstances(circumstances, is_equal);
  }
  if (now.status == RunStatus::kDiverged) return ExitCode::kDiverged;
  return is_equal ? ExitCode::kDone : ExitCode::kUserError;
}

std::vector<std::string> accepted_checks(const RunRecord& record) {
  std::vector<std::string> names;
  for (const CheckFinding& finding : items_of(record.data_checks)) {
    if (finding.accepted) names.push_back(finding.check);
  }
  return names;
}

ExitCode reproduce(const Program& program, const ReproduceArguments& a) {
  const std::string file = record_file(a.record);
  const RunRecord recorded = read_consistent_record(file);
  const training::RunConfig config = config_of(recorded, file);
  const std::string data = training::data_root_of({folder_of(file)}, a.data);
  const std::string log = a.steps ? log_of({folder_of(file)}) : "";
  if (a.steps) check_steps(*a.steps, recorded, log);
  need_tensors();
  check_data(data, recorded, config, program.common.quiet);
  const Place place(a.out);
  const FileLock lock(place.folder().lock(), "the run folder " + place.folder().path);
  const RunRecord now = repeat(program, {.config = config,
                                         .folder = place.folder(),
                                         .data_root = data,
                                         .init_from = initial_weights(recorded, file),
                                         .accept = accepted_checks(recorded),
                                         .time_ends_after = time_ends_after(recorded, config),
                                         .stop_after = a.steps.value_or(INT64_MAX)});
  const bool is_beginning = a.steps && now.steps == *a.steps;
  if (now.status == RunStatus::kStopped && !is_beginning) return ExitCode::kStopped;
  const auto results =
      is_beginning ? compare_beginnings(recorded, now, log, log_of(place.folder()), *a.steps)
                   : compare_results(recorded, now);
  return report(program, recorded, now, results, a.steps);
}

}  // namespace

void add_reproduce(CLI::App& app, Program& program) {
  auto a = std::make_shared<ReproduceArguments>();
  auto* command = add_command(app, program, "reproduce",
                              "repeat a recorded run and compare weights and metrics bit for bit; "
                              "exit code 0: equal, 2: different, 4: diverged this time",
                              [&program, a] { return reproduce(program, *a); });
  command->add_option("record", a->record, "a run folder, or its record.json")->required();
  command
      ->add_option("--steps", a->steps,
                   "repeat only that many steps, and compare the validations and the logged "
                   "training steps until then")
      ->check(positive_range());
  add_data_option(*command, a->data);
  command->add_option(
      "--out", a->out,
      "keep the new run in this folder; default: a temporary folder that is removed");
}

}  // namespace lra::cli

// lra bench: training and inference speed and memory, each figure measured in its own process.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/resources.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "cli/child_process.h"
#include "cli/compute.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "io/progress.h"
#include "mixers/all.h"
#include "tasks/all.h"
#include "tasks/data_checks.h"
#include "tasks/prepare_data.h"
#include "training/settings/data_root.h"
#include "training/settings/new_record.h"
#include "training/settings/presets.h"
#include "training/settings/shipped_configs.h"

namespace lra::cli {
namespace {

// True if --lengths may choose another length than the task's own.
bool has_length_setting(const std::string& task) {
  const auto fields = tasks::find_task(task).describe();
  return std::ranges::count(fields, "length", &FieldInfo::name) > 0;
}

// The paper's Table 2 does not give its sizes: those of the release preset are the defaults. Table
// 4 gives layers, heads and hidden size; the feed-forward width is four times that.
void take_table(BenchArguments& a) {
  if (a.table != 4) return;
  a.mode = "infer";
  const auto sizes = {"model.layers=4", "model.heads=8", "model.embed_dim=128", "model.qkv_dim=128",
                      "model.mlp_dim=512"};
  a.sets.insert(a.sets.begin(), sizes.begin(), sizes.end());
}

// Sets the lengths of the paper's tables, or the only one that images have.
void complete_lengths(BenchArguments& a) {
  const bool is_own = tasks::find_task(a.task).settings_of != nullptr;
  if (has_length_setting(a.task) && !(is_own && a.lengths.empty())) {
    if (a.lengths.empty()) a.lengths = {1024, 2048, 3072, 4096};
    return;
  }
  const int64_t length = config_of(a, a.models.at(0), 0).make_task()->shape().length;
  if (a.lengths.empty()) a.lengths = {length};
  if (a.lengths == std::vector{length}) return;
  refuse("--lengths", "the length of " + a.task + " is " + std::to_string(length),
         "this one, or a task with a setting task.length, such as text", "leave --lengths out");
}

std::vector<std::string> child_arguments(const BenchArguments& a, const CommonOptions& common,
                                         const std::string& model, int64_t length) {
  BenchArguments one = a;
  one.models.clear();
  one.lengths = {length};
  std::vector<std::string> words = bench_words(one, common);
  words.insert(words.end(), {"--measure-one", model, "--mode", a.mode, "--dtype", a.dtype});
  if (a.whole_steps) words.push_back("--whole-steps");
  if (a.real_batch) words.push_back("--real-batch");
  if (a.data) words.insert(words.end(), {"--data", *a.data});
  for (const std::string& set : a.sets) words.insert(words.end(), {"--set", set});
  return words;
}

// The record of a model, without measurements.
RunRecord bench_record(const BenchArguments& a, const std::string& model, const Program& program) {
  const auto config = config_of(a, model, a.lengths.at(0));
  RunRecord record = training::record_of(config, program_provenance(program.common), "", {}, {},
                                         training::edited_presets(config.task, config.model));
  record.kind = "bench";
  record.status = RunStatus::kDone;
  if (!a.findings.empty()) record.data_checks = a.findings;
  return record;
}

std::string record_file(const BenchArguments& a, const std::string& model) {
  return record_folder(a, model) + "/record.json";
}

// Refuses to write over an earlier record with measurements.
void refuse_to_lose_measurements(const BenchArguments& a, const std::string& model) {
  const std::string file = record_file(a, model);
  if (!is_there(file)) return;
  std::string lengths;
  for (const Measurement& m : read_record(file).measurements)
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(m.length);
  if (lengths.empty()) return;
  refuse(file, "holds measurements at length " + lengths + ", which would be overwritten",
         "no record there", "choose another --out, or pass --replace");
}

// Measures one model at every length. A length that fails is reported and left out; the record's
// status is then failed, or stopped if lengths are missing because a stop was requested. `code`
// becomes that of the first failure.
RunRecord bench_model(const BenchArguments& a, const std::string& model, const Program& program,
                      Progress& bar, ExitCode& code) {
  RunRecord record = bench_record(a, model, program);
  for (const int64_t length : a.lengths) {
    if (stop_requested()) break;
    bar.set_postfix(model + " " + std::to_string(length));
    const ChildResult child = run_self(child_arguments(a, program.common, model, length));
    if (child.exit_code == 0) {
      record.measurements.push_back(parse_measurement(child.output, "measurement"));
      auto& warning = record.measurements.back().warning;
      if (warning) bar.message(model + " at " + std::to_string(length) + ": " + *warning);
      if (!a.busy.empty()) warning = (warning ? *warning + "; " : "") + a.busy;
    } else if (!stop_requested()) {
      record.status = RunStatus::kFailed;
      record.failure =
          "length " + std::to_string(length) + " ended with " + describe_end(child.exit_code);
      bar.message(model + ": " + record.failure);
      if (code == ExitCode::kDone) code = failure_code(child.exit_code);
    } else {
      break;
    }
    bar.update();
  }
  const bool is_short = record.measurements.size() < a.lengths.size();
  if (is_short && stop_requested()) record.status = RunStatus::kStopped;
  record.provenance.finished_utc = utc_now();
  return record;
}

void print_table(const std::vector<RunRecord>& records, const BenchArguments& a, bool on_cpu) {
  TextTable table({"model", "length", "steps/s", "slowest", "fastest", "with data", "tokens/s",
                   "examples/s", "computed", "of GEMM", "peak memory"});
  for (const RunRecord& record : records) {
    for (const Measurement& m : record.measurements) {
      // The peak of the process; on a GPU, that of the tensors there.
      const int64_t peak_bytes = on_cpu ? m.peak_resident_bytes : m.peak_tensor_bytes;
      table.add_row(
          {record.model, std::to_string(m.length), fixed(m.steps_per_s, 3) + (m.parts ? "*" : ""),
           fixed(m.slowest_steps_per_s, 3), fixed(m.fastest_steps_per_s, 3),
           m.pipeline_steps_per_s ? fixed(*m.pipeline_steps_per_s, 3) : "-",
           thousands(static_cast<int64_t>(m.tokens_per_s)),
           m.examples_per_s ? fixed(*m.examples_per_s, 2) : "-",
           m.computed_tokens_per_s ? fixed(*m.computed_tokens_per_s / m.tokens_per_s, 2) + " x"
                                   : "-",
           fixed(100 * flops_utilisation(m), 1) + " %",
           human_bytes(static_cast<uint64_t>(peak_bytes))});
    }
  }
  std::printf("%s, %s, preset %s, batch %lld, %s, median of %lld windows\n\n%s", a.mode.c_str(),
              a.task.c_str(), a.preset.c_str(), static_cast<long long>(a.batch), a.dtype.c_str(),
              static_cast<long long>(a.windows), table.text().c_str());
  if (table.text().find('*') != std::string::npos) {
    std::printf("\n* long steps, timed in slices of their batch (--whole-steps turns this off)\n");
  }
  if (a.real_batch) {
    std::printf("\nthe first batch of training; computed: positions per token, padding included\n");
  }
}

// Lengths beyond the examples would name one measurement again and again.
void refuse_lengths_without_examples(const BenchArguments& a, const training::RunConfig& config,
                                     const Split& train) {
  const TaskShape shape = training::preset_of(config).make_task()->shape();
  int64_t longest = shape.length;
  for (int64_t i = 0; i < train.size() * shape.num_towers; ++i) {
    const int64_t length = train.sequence_length(i / shape.num_towers, i % shape.num_towers);
    longest = std::max(longest, length);
  }
  for (const int64_t length : a.lengths) {
    if (length <= longest) continue;
    refuse("--lengths", std::to_string(length) + " is beyond the examples of " + a.task,
           "at most " + std::to_string(longest),
           "without --real-batch, sequences of any length are drawn");
  }
}

// Checks in advance everything that could fail after hours of measuring: the folder of the records
// and the data, with what its checks find.
void check_folders(BenchArguments& a) {
  if (!a.out.empty()) {
    make_folder(a.out);
    if (!a.replace) {
      for (const std::string& model : a.models) refuse_to_lose_measurements(a, model);
    }
  }
  if (!a.data) return;
  const training::RunConfig config = config_of(a, a.models.at(0), a.lengths.at(0));
  const auto task = config.make_task();
  const auto dataset = tasks::prepare_data(config.task_spec(), *task, *a.data, true);
  if (a.real_batch) refuse_lengths_without_examples(a, config, task->split(dataset, "train"));
  a.findings = tasks::checks_of(*task, dataset);
  for (const CheckFinding& finding : a.findings) {
    print_message(printable(checks::text_of(finding)));
  }
}

// The load of other programs before our own work begins, for the records; empty if they are quiet.
std::string load_of_others(bool quiet) {
  const double busy = busy_processors(0.5);
  if (busy < 0.2) return "";
  const std::string load = "other programs keep " + fixed(busy, 1) + " processors busy";
  if (!quiet) print_message(load + ": the figures will not represent this machine");
  return load + " at the start";
}

// Fills in options that were left open, and checks that every model has a configuration.
BenchArguments completed(BenchArguments a) {
  take_table(a);
  if (a.models.empty()) a.models = mixers::mixer_names();
  complete_lengths(a);
  for (const std::string& model : a.models) (void)config_of(a, model, a.lengths.at(0));
  return a;
}

// Runs all models of one table, writes their records, and prints them unless JSON was requested;
// `code` as above.
std::vector<RunRecord> bench_table(const Program& program, const BenchArguments& a,
                                   ExitCode& code) {
  Progress bar({.description = "bench " + a.mode,
                .total = static_cast<int64_t>(a.models.size() * a.lengths.size()),
                .unit = "cell",
                .quiet = program.common.quiet});
  std::vector<RunRecord> records;
  for (const std::string& model : a.models) {
    if (stop_requested()) break;
    records.push_back(bench_model(a, model, program, bar, code));
    // A stop must not put nothing in the place of an earlier measurement.
    if (!a.out.empty() && !(stop_requested() && records.back().measurements.empty())) {
      make_folder(record_folder(a, model));
      write_record(records.back(), record_file(a, model));
    }
  }
  bar.finish();
  if (!program.common.json) print_table(records, a, program.common.on_cpu());
  return records;
}

ExitCode bench(const Program& program, BenchArguments a) {
  if (!a.one.empty()) return measure_one(a, program.common.device);
  std::vector<BenchArguments> tables = {completed(a)};
  if (std::ranges::all_of(a.choices, [](auto* o) { return o->count() == 0; })) {
    a.table = 4;  // after table 2
    tables.push_back(completed(a));
  }
  need_tensors();
  for (BenchArguments& table : tables) check_folders(table);
  const std::string busy = load_of_others(program.common.quiet);
  for (BenchArguments& table : tables) table.busy = busy;
  ExitCode code = ExitCode::kDone;
  std::vector<RunRecord> records;
  for (const BenchArguments& table : tables) {
    if (stop_requested()) break;
    if (!records.empty() && !program.common.json) std::printf("\n");
    for (RunRecord& record : bench_table(program, table, code))
      records.push_back(std::move(record));
  }
  if (program.common.json) {
    Json rows = Json::array();
    for (const RunRecord& record : records) rows.push_back(parse_json(to_json(record), "record"));
    print_json(rows);
  }
  if (!stop_requested()) return code;
  print_message("stopped; " + (a.out.empty() ? "nothing is kept, because there is no --out"
                                             : "the measurements so far are in " + a.out));
  return ExitCode::kStopped;
}

void add_choices(CLI::App& command, BenchArguments& a) {
  const auto choice = [&](const char* name, auto& value, const std::string& help) {
    return a.choices.emplace_back(command.add_option(name, value, help));
  };
  choice("--task", a.task, "task whose model is measured (default text)");
  choice("--models", a.models, "models, separated by commas; default: all")->delimiter(',');
  choice("--lengths", a.lengths,
         "lengths, separated by commas (default 1024,2048,3072,4096; images have their own)")
      ->delimiter(',')
      ->check(count_range());
  choice("--batch", a.batch, "sequences per step (default 32)")->check(count_range());
  auto* mode = choice("--mode", a.mode, "train or infer (default train)")
                   ->check(CLI::IsMember({"train", "infer"}));
  choice("--table", a.table,
         "a table of the paper: 2, training; 4, inference with 4 layers, 8 heads, width 128; "
         "default: both, unless other options select a workload")
      ->check(CLI::IsMember({2, 4}))
      ->excludes(mode);
  choice("--dtype", a.dtype,
         "precision of activations (train.precision): fp32 or bf16 (default fp32)")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  choice("--preset", a.preset, preset_help("release"));
  a.choices.push_back(add_set_option(command, a.sets));
}

}  // namespace

training::RunConfig config_of(const BenchArguments& a, const std::string& model, int64_t length) {
  std::vector<std::string> sets = {"train.precision=" + a.dtype};  // what --set may change
  sets.insert(sets.end(), a.sets.begin(), a.sets.end());
  if (has_length_setting(a.task) && length > 0)
    sets.push_back("task.length=" + std::to_string(length));
  const std::string data = training::data_root(a.data.value_or(""));
  auto config = training::resolve_on_data(a.task, model, a.preset, 0, data, {}, sets);
  training::refuse_masked(config, "lra bench");
  return config;
}

std::string record_folder(const BenchArguments& a, const std::string& model) {
  return a.out + "/" + file_name_of(a.task) + "-" + model + "-" + a.mode +
         (a.real_batch ? "-data" : "") + (a.dtype == "fp32" ? "" : "-" + a.dtype);
}

std::vector<std::string> bench_words(const BenchArguments& a, const CommonOptions& common) {
  std::vector<std::string> words = {"bench", "--json"};
  const auto add = [&](const char* flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  add("--task", a.task);
  add("--preset", a.preset);
  for (const std::string& model : a.models) add("--models", model);
  for (const int64_t length : a.lengths) add("--lengths", std::to_string(length));
  add("--batch", std::to_string(a.batch));
  add("--windows", std::to_string(a.windows));
  add("--window-seconds", std::to_string(a.window_seconds));
  if (!a.out.empty()) add("--out", a.out);
  if (a.replace) words.push_back("--replace");
  add_common_words(words, common);
  return words;
}

void add_bench(CLI::App& app, Program& program) {
  auto a = std::make_shared<BenchArguments>();
  auto* command = add_command(app, program, "bench",
                              "measure training and inference speed and memory on this machine",
                              [&program, a] { return bench(program, *a); });
  add_choices(*command, *a);
  command
      ->add_option("--windows", a->windows,
                   "number of timed windows, whose median is reported (default 5)")
      ->check(count_range());
  command
      ->add_option("--window-seconds", a->window_seconds, "minimum seconds per window (default 1)")
      ->check(seconds_range());
  command->add_flag("--whole-steps", a->whole_steps,
                    "time only whole steps; by default a step longer than five windows is "
                    "timed in up to eight slices of its batch, marked with *");
  command->add_option("--data", a->data,
                      "folder of the data: also measure steps with batches read from it");
  command
      ->add_flag("--real-batch", a->real_batch,
                 "with --data: measure the first batch of training instead, at the lengths of its "
                 "examples, in whole steps")
      ->needs(command->get_option("--data"));
  command->add_option("--out", a->out, "folder for the records of the measurements");
  command->add_flag("--replace", a->replace, "replace records in --out that have measurements");
  command->add_option("--measure-one", a->one, "measure one model in this process")
      ->needs(command->get_option("--lengths"))
      ->group("");
  command
      ->add_flag("--in-turn", a->in_turn,
                 "with --measure-one: a window for each line on standard input")
      ->group("");
}

}  // namespace lra::cli

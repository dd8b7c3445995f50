#include "training/run/prepared_run.h"

#include <algorithm>
#include <iterator>

#include "base/quoted.h"
#include "base/resources.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/data_checks.h"
#include "tasks/prepare_data.h"
#include "training/run/checkpoint.h"
#include "training/run/make_model.h"
#include "training/run/memory_estimate.h"
#include "training/settings/budget.h"
#include "training/settings/data_root.h"
#include "training/settings/fairness.h"
#include "training/settings/new_record.h"
#include "training/settings/presets.h"
#include "training/settings/self_pretraining.h"
#include "training/settings/shipped_configs.h"

namespace lra::training {
namespace {

void refuse_empty_splits(const tasks::Task& task, const Dataset& dataset) {
  for (const char* name : kSplitNames) {
    if (task.split(dataset, name).size() > 0) continue;
    throw Error({.where = dataset.folder(),
                 .what = "split '" + std::string(name) + "' has no examples",
                 .expected = "at least one",
                 .advice = "prepare the data again"});
  }
}

// Refuses generated data that lacks the sizes requested in addition to the preset; data generated
// for the run has them. An unusual size that nobody requested is stated in the record and its
// division.
void refuse_other_size(const RunConfig& config, const Dataset& dataset, const RunRecord& record) {
  if (dataset.manifest().source != "generated") return;
  const RunConfig preset = preset_of(config);
  const std::string problem =
      size_unlike(config.task_settings, *record.data_examples, &preset.task_settings);
  if (problem.empty()) return;
  throw Error({.where = dataset.folder(),
               .what = "holds " + problem,
               .advice = "leave the setting out, or name another data folder"});
}

// All ranks take equal shares, in the same number of micro-batches.
void refuse_unequal_shares(const TrainConfig& config, const Ranks& ranks) {
  const int64_t parts = config.accumulate * ranks.count();
  if (ranks.count() == 1 ||
      (config.batch_size % ranks.count() == 0 && parts <= config.batch_size)) {
    return;
  }
  throw Error(
      {.where = "train.batch_size",
       .what = std::to_string(config.batch_size) + " examples for " +
               std::to_string(ranks.count()) +
               " processes with train.accumulate = " + std::to_string(config.accumulate),
       .expected = "a multiple of the number of processes, with an example in every micro-batch",
       .advice = "change train.batch_size or train.accumulate, or start a different number of "
                 "processes"});
}

// Each rank has read its own arguments, files and machine.
void refuse_different_runs(const RunRecord& record, Ranks& ranks) {
  const Provenance& p = record.provenance;
  std::string kernels;
  for (const auto& [op, implementation] : p.kernels) kernels += op + "=" + implementation + " ";
  const std::string program = p.lra_version + " " + p.git_revision + " " + p.git_dirty + " " +
                              p.compiler + " " + p.torch_version;
  const auto refuse_others = [&](const std::string& what, const std::string& own,
                                 const std::string& advice) {
    if (ranks.all_equal(own)) return;
    throw Error({.where = ranks.name(),
                 .what = "the ranks have different " + what + "; here: " + own,
                 .expected = "the same on all",
                 .advice = advice});
  };
  refuse_others("settings", record.config_hash, "start all ranks with the same arguments");
  refuse_others("data", record.data_hash, "give all ranks the same data");
  refuse_others("programs", program, "start the same program on all machines");
  refuse_others("kernels", kernels, "use machines with the same processor, or LRA_KERNELS=ref");
}

// None on the CPU, nor with a profiler, which replaces the counter while it records.
std::unique_ptr<TensorMemory> counted_memory(const TrainOptions& options) {
  if (options.device.is_cpu() || !options.profile.path.empty()) return nullptr;
  return std::make_unique<TensorMemory>(options.device);
}

Dataset data_of(const PreparedRun& run) {
  const tasks::TaskSpec& spec = run.config.task_spec();
  if (run.before) refuse_lost_data(spec, *run.task, run.options.data_root, *run.before);
  // A model that cannot be built is refused before data is made for it.
  if (!tasks::data_found(spec, *run.task, run.options.data_root))
    (void)count_parameters(run.config);
  return tasks::prepare_data(spec, *run.task, run.options.data_root, run.options.quiet);
}

// Weights, gradients and Adam's two moments can be too much by themselves: checked before the first
// is allocated.
std::unique_ptr<models::Model> model_that_fits(const RunConfig& config, const TaskShape& shape,
                                               const TrainOptions& options, const Ranks& ranks) {
  if (config.train.memory_check == "refuse" && options.device.is_cpu()) {
    constexpr int64_t kBytesOfParameter = 16;
    const int64_t bytes = kBytesOfParameter * count_parameters(config);
    refuse_without_memory({.peak_bytes = resident_bytes() + bytes, .extra_bytes = bytes},
                          memory_left(options, ranks));
  }
  return make_any_model(config, shape, options.device);
}

// Weights of a masked run lack the classifier alone, which is drawn.
void refuse_partial(const std::string& file, const InitialWeights& weights) {
  if (std::ranges::all_of(weights.fresh, is_of_classifier) &&
      std::ranges::all_of(weights.unused, is_of_masked_run) && !weights.unused.empty()) {
    return;
  }
  constexpr size_t kMaxNames = 5;
  std::string what;
  if (!weights.fresh.empty())
    what = "lacks tensors of the model: " + quoted_list(weights.fresh, kMaxNames);
  if (!weights.unused.empty()) {
    what += (what.empty() ? "" : "; ") + std::string("holds tensors that are not in the model: ") +
            quoted_list(weights.unused, kMaxNames);
  }
  if (what.empty()) return;
  throw Error(
      {.where = file,
       .what = what,
       .expected = "a tensor of the same shape for each",
       .advice =
           "add --init-partial to initialize the missing ones at random and ignore the others"});
}

// Test examples that the weights of another run were trained on; a warning if its data is not at
// hand, and it knows the labels.
void add_known_examples(const RunIdentity& weights_of, const std::optional<RecordOfWeights>& theirs,
                        bool has_classifier, const PreparedRun& run,
                        std::vector<CheckFinding>& findings, std::vector<std::string>& warnings) {
  if (weights_of.data_hash == run.dataset.hash()) return;
  if (&tasks::find_task(weights_of.task) != &run.config.task_spec()) return;
  const ScaledSplit test{run.task->split(run.dataset, "test"), scaling_of(run.dataset)};
  const auto known = theirs ? count_trained_on(theirs->folder, theirs->record, test) : std::nullopt;
  if (!known && has_classifier) {
    warnings.push_back(
        "the run began with weights of other data, which is not at hand: are no examples of this "
        "test among it?");
  }
  if (known.value_or(0) == 0) return;
  findings.push_back(
      {.check = "copies",
       .split = "test",
       .text = thousands(*known) + " of the " + thousands(test.split.size()) +
               " test examples are among those that the first weights of the run were trained on"});
}

// Puts the weights of options.init_from into the model; their hash becomes a setting.
InitialWeights begin_with_weights(PreparedRun& run, std::vector<CheckFinding>& findings,
                                  std::vector<std::string>& warnings) {
  FlatParameters parameters(*run.model, FlatUse::kInference);
  MatchedWeights found = load_matching_weights(run.options.init_from, parameters);
  InitialWeights weights{
      .origin = found.run ? text_of(*found.run) : "a file that does not name its run",
      .hash = weights_hash(parameters),
      .fresh = std::move(found.fresh),
      .unused = std::move(found.unused),
      .pretraining = {}};
  const auto theirs = record_of_weights(run.options.init_from, found.run);
  weights.pretraining = pretraining_of(run.options.init_from, theirs, weights.hash);
  if (!run.options.init_partial) refuse_partial(run.options.init_from, weights);
  const bool has_classifier =
      !run.config.train.is_masked() && std::ranges::none_of(weights.fresh, is_of_classifier);
  if (found.run) add_known_examples(*found.run, theirs, has_classifier, run, findings, warnings);
  const std::string& known_hash = run.config.initial_weights;  // of a run that is being reproduced
  if (!known_hash.empty() && known_hash != weights.hash) {
    throw Error({.where = run.options.init_from,
                 .what = "gives weights with the hash " + weights.hash,
                 .expected = known_hash,
                 .advice = "name the file that the run began with"});
  }
  run.config.initial_weights = weights.hash;
  return weights;
}

// The settings of the loop, with the steps that they mean on the run's data.
TrainConfig loop_of(const RunRecord& record) {
  TrainConfig loop = RunConfig::from_table(record.config).train;
  loop.steps = record.planned_steps;
  return loop;
}

// Carries over the past of a resumed run, to which a change of settings adds a part.
void carry_over(const RunRecord& before, const std::string& change, RunRecord& record) {
  if (!change.empty() && before.steps >= record.planned_steps) {
    throw Error({.where = "--set",
                 .what = "the run has completed all of its " + std::to_string(before.steps) +
                         " steps: with " + change + " there is nothing left to train",
                 .expected = "train.steps above " + std::to_string(before.steps) +
                             ", or train.epochs, if the run counts those",
                 .advice = "'lra eval' tests its current weights"});
  }
  record.tuning = before.tuning;
  record.earlier_parts = before.earlier_parts;
  if (!change.empty()) {
    auto& parts = record.earlier_parts ? *record.earlier_parts : record.earlier_parts.emplace();
    parts.push_back({.steps = before.steps,
                     .config_hash = before.config_hash,
                     .fingerprint = before.fingerprint,
                     .change = change});
    const std::string jump = rate_jump(loop_of(before), loop_of(record), before.steps);
    if (!jump.empty()) add_warning(record, jump);
  }
}

// Findings of the checks of the data, and about the weights that the run begins with. A resumed run
// keeps what it had.
void add_data_checks(const PreparedRun& run, std::vector<CheckFinding> found, RunRecord& record) {
  if (run.before) {
    record.data_checks = run.before->data_checks;
    return;
  }
  std::ranges::move(tasks::checks_of(*run.task, run.dataset), std::back_inserter(found));
  for (const std::string& name : checks::accept(run.options.accept, found)) {
    if (!run.options.quiet)
      print_message("--accept " + name +
                    ": this check found nothing in the data, nothing to accept");
  }
  if (!found.empty()) record.data_checks = std::move(found);
}

TrainOptions of_rank(TrainOptions options, const Ranks& ranks) {
  if (ranks.count() > 1) options.provenance.ranks = ranks.count();
  if (ranks.is_first()) return options;
  options.quiet = true;
  options.profile = {};
  return options;
}

}  // namespace

int64_t memory_left(const TrainOptions& options, const Ranks& ranks) {
  return std::min(options.memory_limit, available_memory_bytes() / ranks.count_on_this_machine());
}

PreparedRun prepare_run(RunConfig config, RunFolder folder, TrainOptions options, Ranks& ranks) {
  PreparedRun run{.config = std::move(config),
                  .folder = std::move(folder),
                  .options = of_rank(std::move(options), ranks)};
  checks::refuse_unknown_checks(run.options.accept);
  run.task = run.config.make_task();
  if (run.options.resume) run.before = read_record(run.folder.record());
  run.dataset = data_of(run);
  run.shape = run.task->shape();
  run.device_memory = counted_memory(run.options);
  run.model = model_that_fits(run.config, run.shape, run.options, ranks);
  std::optional<InitialWeights> initial;
  if (run.before) initial = run.before->initial_weights;
  std::vector<CheckFinding> findings;
  std::vector<std::string> warnings;
  if (!run.options.init_from.empty()) initial = begin_with_weights(run, findings, warnings);
  // Resumed under the shipped presets, it is still a run that began under edited ones.
  std::string edited = run.before ? edited_presets_of(*run.before) : "";
  if (edited.empty()) edited = edited_presets(run.config.task, run.config.model);
  run.record = new_record(run.config, *run.task, run.dataset, run.options.provenance,
                          std::move(initial), edited);
  for (const std::string& warning : warnings) add_warning(run.record, warning);
  if (ranks.is_first()) add_data_checks(run, std::move(findings), run.record);
  if (run.before) carry_over(*run.before, run.options.change, run.record);
  refuse_empty_splits(*run.task, run.dataset);
  if (!run.options.resume) refuse_other_size(run.config, run.dataset, run.record);
  refuse_unequal_shares(run.config.train, ranks);
  refuse_different_runs(run.record, ranks);
  run.config.train.steps = run.record.planned_steps;
  return run;
}

}  // namespace lra::training

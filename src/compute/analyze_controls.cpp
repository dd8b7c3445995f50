// Scores of a run on other inputs: without order, without distance, longer, larger.
#include "analysis/adapted_model.h"
#include "compute/analyses.h"
#include "tasks/data_checks.h"
#include "tasks/prepare_data.h"
#include "training/loop/evaluate.h"
#include "training/settings/data_root.h"

namespace lra::cli {
namespace {

using training::LoadedRun;

const std::vector<int64_t> kFields = {16, 64, 256};  // where --fields is not given

// Adds the score of the run's weights in a model for `split`, or why there is no such model.
// Returns false when a stop was requested.
bool add_adapted(const LoadedRun& run, ChangedInputs& inputs, const std::string& change,
                 const std::string& value, const Split& split, const analysis::Adaptation& to) {
  try {
    const models::SequenceClassifier model = analysis::adapted_model(run, to);
    return inputs.add(change, value, model, split, to.shape);
  } catch (const analysis::BoundToLength& error) {
    return inputs.refuse(change, value, error.what());
  }
}

int64_t examples_of(const std::vector<ChangedInput>& scores) {
  for (const ChangedInput& one : scores) {
    if (one.score) return one.score->num_examples;
  }
  return 0;
}

// The controls that the run was trained with.
analysis::Adaptation unchanged(const LoadedRun& run) {
  return {.shape = run.task->shape(),
          .receptive_field = run.stored.config.model_config.receptive_field};
}

// The task of the run with longer or shorter sequences; shape and split go together.
struct OtherLength {
  std::unique_ptr<tasks::Task> task;
  Split split;
};

OtherLength at_length(const LoadedRun& run, const Dataset& dataset, int64_t length,
                      const std::string& split) {
  training::RunConfig config = run.stored.config;
  if (config.task_settings.find("length") == nullptr) {
    refuse("--lengths", "the length of " + config.task + " is fixed",
           "a task with a setting task.length, such as text", "leave --lengths out");
  }
  config.task_settings.set("length", {length, "--lengths"});
  auto task = config.make_task();
  Split examples = config.split_of(*task, dataset, split);
  return {std::move(task), std::move(examples)};
}

bool measure_controls(const LoadedRun& run, const Dataset& dataset, const AnalyzeArguments& a,
                      ChangedInputs& inputs) {
  // A length that cannot be is refused before anything is evaluated.
  std::vector<OtherLength> others;
  for (const int64_t length : a.lengths) others.push_back(at_length(run, dataset, length, a.split));
  const analysis::Adaptation own = unchanged(run);
  const Split split = run.stored.config.split_of(*run.task, dataset, a.split);
  bool going = add_adapted(run, inputs, "none", "", split, own) &&
               add_adapted(run, inputs, "shuffled tokens", "", split.with_shuffled_tokens(), own);
  for (const int64_t field : a.fields.empty() ? kFields : a.fields) {
    if (!going || field >= own.shape.length) continue;
    going = add_adapted(run, inputs, "receptive field", std::to_string(field), split,
                        {.shape = own.shape, .receptive_field = field});
  }
  for (const OtherLength& other : others) {
    if (!going) break;
    const TaskShape shape = other.task->shape();
    going = add_adapted(run, inputs, "length", std::to_string(shape.length), other.split,
                        {.shape = shape, .receptive_field = own.receptive_field});
  }
  return going;
}

}  // namespace

bool ChangedInputs::add(const std::string& change, const std::string& value,
                        const models::Model& model, const Split& split, const TaskShape& shape) {
  ChangedInput result{.change = change, .value = value, .refused = ""};
  const training::RunConfig& config = run_.stored.config;
  // Batches of as many tokens as the run evaluates at once.
  const int64_t tokens = config.train.eval_batch_size * run_.task->shape().length;
  auto found = training::evaluate_with_bar(
      model, split, shape, std::max<int64_t>(1, tokens / shape.length), asked_.a.examples,
      {.description = result.title(), .unit = "ex", .quiet = asked_.common.quiet},
      config.train.trim_padding, config.masking());
  if (found.stopped) return false;
  found.summary.step = run_.weights.progress.step;
  result.score = found.summary;
  scores.push_back(std::move(result));
  return true;
}

bool ChangedInputs::refuse(const std::string& change, const std::string& value,
                           const std::string& why) {
  scores.push_back({.change = change, .value = value, .score = {}, .refused = why});
  return true;
}

std::optional<AnalysisRecord> analyze_controls(const Asked& asked) {
  const LoadedRun run = asked.run(training::ModelPrecision::kAsTrained);
  const Dataset dataset = asked.data_of(run);
  ChangedInputs inputs(run, asked);
  if (!measure_controls(run, dataset, asked.a, inputs)) return {};
  AnalysisRecord record = empty_analysis(run, asked, &dataset);
  record.num_examples = examples_of(inputs.scores);
  record.controls = {.scores = std::move(inputs.scores), .baselines = run.stored.record.baselines};
  record.choices["weights"] =
      "the run's own, trained on unchanged inputs: a score can fall because "
      "the change is unknown to them, too";
  record.choices["shuffled tokens"] = "every example in a random order of its own, CLS in front";
  record.choices["receptive field"] =
      "blocks of so many tokens, encoded apart at their own positions; the classifier reads the "
      "mean over blocks, by their tokens";
  record.choices["length"] = "texts cut at this many tokens; positions continue";
  record.choices["examples"] = asked.examples_choice();
  return record;
}

std::optional<AnalysisRecord> analyze_transfer(const Asked& asked) {
  const AnalyzeArguments& a = asked.a;
  const LoadedRun run = asked.run(training::ModelPrecision::kAsTrained);
  const std::string root = training::data_root_of({asked.folder}, a.data);
  ConfigTable as_trained;  // images as the run reads them: as gray levels or as tokens
  if (const ConfigValue* input = run.stored.config.task_settings.find("input")) {
    as_trained.table("task").set("input", *input);
  }
  const training::RunConfig to = training::resolve_on_data(
      a.to, run.stored.config.model, run.stored.config.preset, 0, root, as_trained, {});
  const auto task = to.make_task();
  const TaskShape shape = task->shape();
  analysis::refuse_other_examples(run, shape);
  const Dataset dataset = tasks::prepare_data(to.task_spec(), *task, root, asked.common.quiet);
  ChangedInputs inputs(run, asked);
  const Split split = run.stored.config.split_of(*task, dataset, a.split);
  for (const std::string& positions : a.positions) {
    const analysis::Adaptation adaptation{
        .shape = shape, .receptive_field = unchanged(run).receptive_field, .positions = positions};
    if (!add_adapted(run, inputs, "positions", positions, split, adaptation)) return {};
  }
  AnalysisRecord record = empty_analysis(run, asked);
  for (CheckFinding& finding : tasks::checks_of(*task, dataset)) {
    if (!record.data_checks) record.data_checks.emplace();
    record.data_checks->push_back(std::move(finding));
  }
  record.split = a.split;
  record.num_examples = examples_of(inputs.scores);
  record.transfer = {.task = to.task,
                     .task_title = to.task_title(),
                     .task_version = to.task_spec().version,
                     .data_hash = dataset.hash(),
                     .scores = std::move(inputs.scores)};
  record.choices["training"] = "none on " + to.task;
  record.choices["continued"] =
      "position p of the larger input is encoded as p; learned positions "
      "have no more than they were trained with";
  record.choices["stretched"] =
      "as the position of the run's own input in proportion, in images by row and column; steps of "
      "state spaces (S4D, S5) in proportion, in images by rows";
  record.choices["examples"] = asked.examples_choice();
  return record;
}

}  // namespace lra::cli

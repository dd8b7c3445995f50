// lra eval: accuracy, loss and where a finished or running run fails.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <sstream>

#include "analysis/adapted_model.h"
#include "base/counted.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "cli/compute.h"
#include "data/new_folder.h"
#include "io/atomic_file.h"
#include "io/findings_json.h"
#include "tasks/data_checks.h"
#include "tasks/prepare_data.h"
#include "training/loop/breakdown.h"
#include "training/run/loaded_run.h"
#include "training/settings/data_root.h"
#include "training/settings/run_warnings.h"

namespace lra::cli {
namespace {

// Names data or weights that are not the run's own; empty if all are.
struct Foreign {
  std::string weights, data;
  int64_t num_cut = 0;  // examples of other data that are longer than the model reads
  std::vector<CheckFinding> findings = {};  // about the data
};

// Examples of other data that the run was trained on, if its own data is at hand.
void add_known_examples(const EvalArguments& a, const training::LoadedRun& run,
                        const Dataset& dataset, std::vector<CheckFinding>& findings) {
  const ScaledSplit split{run.task->split(dataset, a.split), scaling_of(dataset)};
  const int64_t known =
      training::count_trained_on(training::RunFolder{a.run}, run.stored.record, split).value_or(0);
  if (known == 0) return;
  findings.push_back({.check = "copies",
                      .split = a.split,
                      .text = thousands(known) + " of the " + thousands(split.split.size()) +
                              " examples are among those that the run was trained on"});
}

Foreign foreign_of(const EvalArguments& a, const training::LoadedRun& run, const Dataset& dataset) {
  Foreign foreign{.weights = run.foreign_weights(), .data = ""};
  foreign.findings = run.stored.record.data_checks.value_or(foreign.findings);
  if (dataset.hash() == run.stored.record.data_hash) return foreign;
  foreign.findings = tasks::checks_of(*run.task, dataset);
  add_known_examples(a, run, dataset, foreign.findings);
  foreign.data = dataset.hash();
  foreign.num_cut = training::count_longer(run.task->split(dataset, a.split), run.task->shape());
  return foreign;
}

// The accuracy that the record has of the same weights on the same examples, if it has one. On
// another processor or device a few examples may fall to the other side.
std::optional<double> recorded_accuracy(const training::LoadedRun& run, const Evaluation& now,
                                        const std::string& split, const Foreign& foreign) {
  if (!foreign.weights.empty() || !foreign.data.empty()) return {};
  const RunRecord& record = run.stored.record;
  std::vector<Evaluation> known;
  if (split == "val") known = record.val_curve;
  if (split == "test" && record.test) known = {*record.test};
  for (const Evaluation& e : known) {
    if (e.step == now.step && e.num_examples == now.num_examples) return e.accuracy;
  }
  return {};
}

// The place of the weights in their run: " (best validation)"; empty for others.
std::string kind_of_weights(const std::string& checkpoint) {
  return checkpoint == "best" ? " (best validation)" : checkpoint == "last" ? " (the last)" : "";
}

// The text, or null.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Names the run by its record, since its folder may have been renamed or copied.
std::string text_of_run(const RunRecord& run, bool is_exported) {
  const std::string text = run.model_title + " on " + run.task_title + ", preset " + run.preset +
                           ", seed " + std::to_string(run.seed);
  if (!is_exported) return text;
  const std::string tested = run.test ? percent(run.test->accuracy) + " with the weights of step " +
                                            thousands(run.test->step)
                                      : "none";
  return "exported: " + text + ", test accuracy in its record " + tested;
}

void print_text(const training::EvaluationResult& result, const EvalArguments& a,
                const training::LoadedRun& loaded, const Foreign& foreign,
                std::optional<double> recorded, const std::optional<BreakdownResult>& breakdown) {
  const RunRecord& run = loaded.stored.record;
  std::printf("%s\n", text_of_run(run, training::is_exported(a.run)).c_str());
  std::printf("%s, %s split, weights of step %s%s", a.run.c_str(), a.split.c_str(),
              thousands(result.summary.step).c_str(), kind_of_weights(loaded.checkpoint).c_str());
  if (run.status != RunStatus::kDone && foreign.weights.empty()) {
    std::printf(" of %s: the run is %s", thousands(run.planned_steps).c_str(),
                to_string(run.status).c_str());
  }
  if (!foreign.weights.empty()) {
    std::printf(" of ANOTHER RUN (%s)", printable(foreign.weights).c_str());
  }
  if (!foreign.data.empty()) std::printf(", on OTHER DATA (hash %s)", foreign.data.c_str());
  if (foreign.num_cut > 0) {
    std::printf("; %s cut to the model's length", counted(foreign.num_cut, "example").c_str());
  }
  std::printf("\n  accuracy  %s on %s\n", percent(result.summary.accuracy).c_str(),
              examples_of(result.summary).c_str());
  if (recorded && *recorded != result.summary.accuracy) {
    std::printf("  RECORDED  %s of the same weights on the same examples\n",
                percent(*recorded).c_str());
  }
  std::printf("  loss      %s\n", fixed(result.summary.loss, 4).c_str());
  if (breakdown) std::printf("  macro F1  %s\n", fixed(breakdown->macro_f1, 4).c_str());
  if (breakdown && breakdown->auc)
    std::printf("  AUC       %s\n", fixed(*breakdown->auc, 4).c_str());
  std::printf("\n");
  if (const std::string changed = loaded.changed_code(); !changed.empty()) {
    std::printf("warning: %s\n", printable(changed).c_str());
  }
  for (const CheckFinding& finding : foreign.findings) {
    std::printf("%s\n", printable(checks::text_of(finding)).c_str());
  }
  if (breakdown) std::printf("%s", breakdown_text(*breakdown).c_str());
}

// The run's weights for its task with other settings: a model of another length.
void change_task(training::LoadedRun& run, const ConfigTable& settings) {
  training::RunConfig& config = run.stored.config;
  std::unique_ptr<tasks::Task> task = config.task_spec().make(settings);
  const TaskShape shape = task->shape();
  analysis::refuse_other_examples(run, shape);
  auto model = std::make_unique<models::SequenceClassifier>(analysis::adapted_model(
      run, {.shape = shape, .receptive_field = config.model_config.receptive_field}));
  // As many tokens at once as the run evaluates.
  int64_t& batch = config.train.eval_batch_size;
  batch = std::max<int64_t>(1, batch * run.task->shape().length / shape.length);
  config.task_settings = settings;
  run.model = std::move(model);
  run.task = std::move(task);
}

// Generated if it can be and there is none. The run's own data is refused: a task that takes
// shorter sequences would accept it.
Dataset data_of_changed_task(const training::LoadedRun& run, const EvalArguments& a, bool quiet) {
  const std::string root = training::data_root_of({run.folder}, a.data);
  Dataset dataset = tasks::prepare_data(run.stored.config.task_spec(), *run.task, root, quiet);
  if (dataset.hash() != run.stored.record.data_hash) return dataset;
  refuse(root, "holds the run's own data", "data for the settings of --set",
         "name another folder with --data: it is filled if it is there and empty");
}

// The shortest digits that read back as the same number.
std::string digits(float value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << std::quoted(text, '"', '"');
  return out.str();
}

std::string column_name(std::string name) {
  std::ranges::replace(name, ' ', '_');
  return name;
}

// Throws lra::Error for a file that exists already, and for a kind of file other than .csv.
void refuse_predictions_file(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".csv") {
    refuse("--predictions", printable(path) + " has another ending than .csv", "a CSV file",
           "pandas.read_csv(FILE).to_parquet(...) makes Parquet of it");
  }
  refuse_existing(path, "a file", "--predictions");
}

// CSV with a row for each example, in the order of the split: index, length, label, prediction, the
// probability of each class, and the properties that the task knows.
void write_predictions(const std::string& path, const training::EvaluationResult& result,
                       const training::LoadedRun& run, const Dataset& dataset,
                       const std::string& split_name) {
  const Split split = run.stored.config.split_of(*run.task, dataset, split_name);
  const std::vector<std::string> names = run.task->label_names(dataset);
  const auto name_of = [&](int64_t label) {
    return names.empty() ? std::to_string(label) : names.at(static_cast<size_t>(label));
  };
  auto properties = training::properties_of(run.stored.config, *run.task, dataset, split_name);
  const std::vector<std::string> lengths = std::move(properties.front().values);
  properties.erase(properties.begin());
  std::string csv = "index,length,label,prediction";
  for (int64_t c = 0; c < run.task->shape().num_classes; ++c) {
    csv += "," + quoted("probability_" + name_of(c));
  }
  for (const auto& property : properties) csv += "," + quoted(column_name(property.name));
  csv += "\n";
  for (size_t i = 0; i < result.predictions.size(); ++i) {
    csv += std::to_string(i) + "," + lengths.at(i) + "," +
           quoted(name_of(split.label(static_cast<int64_t>(i)))) + "," +
           quoted(name_of(result.predictions[i].label));
    for (const float probability : result.probabilities.at(i)) csv += "," + digits(probability);
    for (const auto& property : properties) csv += "," + quoted(property.values.at(i));
    csv += "\n";
  }
  write_file_atomically(path, csv);
}

}  // namespace

ExitCode eval(const Program& program, const EvalArguments& a) {
  training::LoadedRun run(a.run, a.weights, training::ModelPrecision::kAsTrained,
                          at::Device(program.common.device));
  if (!a.predictions.empty()) {
    training::refuse_masked(run.stored.config, "--predictions");
    refuse_predictions_file(a.predictions);
  }
  if (!a.sets.empty()) change_task(run, a.task);
  const auto dataset =
      a.sets.empty() ? training::open_run_data(run, {a.data, a.other_data, program.common.quiet})
                     : data_of_changed_task(run, a, program.common.quiet);
  const auto result = training::evaluate_run(run, dataset, a.split, 0, program.common.quiet,
                                             !a.predictions.empty());
  if (result.stopped) {
    print_message("stopped by a signal; nothing was written");
    return ExitCode::kStopped;
  }
  const Foreign foreign = foreign_of(a, run, dataset);
  const auto recorded = recorded_accuracy(run, result.summary, a.split, foreign);
  std::optional<BreakdownResult> breakdown;  // nothing where places are predicted
  if (!result.predictions.empty()) {
    breakdown = training::breakdown_of(result, run.stored.config, *run.task, dataset, a.split);
  }
  if (!a.predictions.empty()) write_predictions(a.predictions, result, run, dataset, a.split);
  if (program.common.json) {
    print_json({{"run", a.run},
                {"exported", training::is_exported(a.run)},
                {"model", run.stored.record.model},
                {"task", run.stored.record.task},
                {"preset", run.stored.record.preset},
                {"seed", run.stored.record.seed},
                {"foreign_weights", text_or_null(foreign.weights)},
                {"changed_code", text_or_null(run.changed_code())},
                {"other_data", text_or_null(foreign.data)},
                {"cut_examples", foreign.num_cut},
                {"data_checks", to_json_value(foreign.findings)},
                {"split", a.split},
                {"checkpoint", run.checkpoint},
                {"step", result.summary.step},
                {"accuracy", result.summary.accuracy},
                {"recorded_accuracy", json_or_null(recorded)},
                {"loss", json_number(result.summary.loss)},
                {"examples", result.summary.num_examples},
                {"positions", json_or_null(result.summary.num_positions)},
                {"label_names", run.task->label_names(dataset)},
                {"macro_f1", breakdown ? Json(breakdown->macro_f1) : Json()},
                {"auc", breakdown && breakdown->auc ? Json(*breakdown->auc) : Json()},
                {"confusion", result.confusion},
                {"breakdown", breakdown ? to_json_object(*breakdown) : Json()}});
  } else {
    print_text(result, a, run, foreign, recorded, breakdown);
  }
  return ExitCode::kDone;
}

}  // namespace lra::cli

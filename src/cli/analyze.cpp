// lra analyze: the paper's other figures of finished or running runs, each as
// RUN/analysis/KIND.json.
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/clock.h"
#include "cli/compute.h"
#include "io/atomic_file.h"
#include "training/settings/run_folder.h"
#include "training/settings/stored_run.h"

namespace lra::cli {
namespace {

// Refuses a folder that cannot be written, before minutes are spent on a result. A folder that is
// not a run is reported as such, later.
void refuse_unwritable(const training::RunFolder& run) {
  const bool is_made = ::access(run.analysis().c_str(), F_OK) == 0;
  const std::string place = is_made ? run.analysis() : run.path;
  if (::access(run.record().c_str(), F_OK) != 0 || ::access(place.c_str(), W_OK | X_OK) == 0)
    return;
  throw io_error(place, "cannot be written to", errno);
}

ExitCode analyze(const Program& program, const AnalyzeArguments& a, const std::string& kind) {
  Json all = Json::array();
  for (const std::string& folder : a.runs) {
    refuse_unwritable(training::RunFolder{folder});
    // Scores and gradients of places are as good as those of a class.
    if (kind != "reach") {
      training::refuse_masked(training::read_run({folder}).config, "an analysis");
    }
    std::optional<AnalysisRecord> record = analysis_of(kind, program.common, a, folder);
    if (!record) return ExitCode::kStopped;
    record->provenance.finished_utc = utc_now();
    const std::string analyses = training::RunFolder{folder}.analysis();
    make_folder(analyses);
    const std::string file = analyses + "/" + record->kind + ".json";
    write_analysis(*record, file);
    if (program.common.json) {
      all.push_back({{"run", folder}, {"file", file}, {"analysis", to_json_object(*record)}});
    } else {
      std::printf("%s", analysis_text(*record, folder).c_str());
    }
  }
  if (program.common.json) print_json(all);
  return ExitCode::kDone;
}

// Options that several kinds have.
enum Options : unsigned {
  kHasWeights = 1,
  kHasSplit = 2,
  kHasData = 4,
  kHasOtherData = 8,
  kHasExamples = 16
};
constexpr unsigned kHasOwnData = kHasData | kHasOtherData;

CLI::App* add_kind(CLI::App& parent, Program& program, const std::shared_ptr<AnalyzeArguments>& a,
                   const std::string& name, const std::string& help, unsigned options) {
  auto* command = add_command(parent, program, name, help,
                              [&program, a, name] { return analyze(program, *a, name); });
  command->add_option("run", a->runs, "run folders")->required();
  if (options & kHasWeights) add_weights(*command, a->weights);
  if (options & kHasSplit) {
    command->add_option("--split", a->split, "train, val or test (default " + a->split + ")")
        ->check(one_split());
  }
  if (options & kHasData) add_data_option(*command, a->data);
  if (options & kHasOtherData)
    command->add_flag("--other-data", a->other_data, "read data other than the run's");
  if (options & kHasExamples) {
    command
        ->add_option("--examples", a->examples,
                     "maximum number of examples, the same draw in every run; default: all")
        ->check(count_range());
  }
  return command;
}

void add_numbers(CLI::App& command, const char* name, std::vector<int64_t>& values,
                 const char* help) {
  command.add_option(name, values, help)->delimiter(',')->check(count_range());
}

}  // namespace

void add_analyze(CLI::App& app, Program& program) {
  CLI::App* parent =
      add_group(app, "analyze", "analyze runs: attention span, rollout, convergence and more");
  auto a = std::make_shared<AnalyzeArguments>();
  a->split = "val";
  const auto add = [&](const char* name, const char* help, unsigned options) {
    return add_kind(*parent, program, a, name, help, options);
  };

  add("span",
      "mean distance between a query and the keys it attends to, per layer and head (Figure 2)",
      kHasWeights | kHasSplit | kHasOwnData)
      ->add_option("--samples", a->samples,
                   "number of examples, the same draw in every run (default 1000)")
      ->check(count_range());
  add("generalization", "train and test accuracy, evaluated with dropout off (Table 3)",
      kHasWeights | kHasOwnData | kHasExamples);
  add("convergence", "training steps until validation accuracy reaches thresholds (Table 5)", 0)
      ->add_option("--thresholds", a->thresholds,
                   "accuracies, separated by commas (default 30%,35%, those of the paper; where "
                   "guessing reaches as much, 10 and 20 points above chance)");
  auto* rollout =
      add("rollout", "where the classifier's attention comes from, as pictures (Figure 5)",
          kHasWeights | kHasSplit | kHasOwnData);
  rollout->add_option("--index", a->indices, "which examples, separated by commas")
      ->delimiter(',')
      ->take_all()
      ->allow_extra_args(false);
  rollout
      ->add_option("--count", a->count,
                   "without --index: how many of the first examples (default 4)")
      ->check(CLI::Range(1, 1000));
  add("embeddings", "cosine similarity of token and position embeddings (Figure 4)", kHasWeights);

  // Scores are those of the test split.
  a = std::make_shared<AnalyzeArguments>();
  a->split = "test";

  add("breakdown", "where a model fails: accuracy by class, length and what the task knows",
      kHasWeights | kHasSplit | kHasOwnData);
  auto* controls = add(
      "controls",
      "the score without token order, without long distances, and with longer or shorter inputs",
      kHasWeights | kHasSplit | kHasOwnData | kHasExamples);
  add_numbers(*controls, "--fields", a->fields,
              "receptive fields in tokens, separated by commas (default 16,64,256)");
  add_numbers(*controls, "--lengths", a->lengths,
              "lengths at which texts are cut instead of task.length, separated by commas");
  auto* reach =
      add("reach", "how far each layer reaches: gradients by distance, and the score in windows",
          kHasWeights | kHasSplit | kHasOwnData | kHasExamples);
  add_numbers(*reach, "--fields", a->fields,
              "windows in tokens, separated by commas (default 4,16,64,256)");
  reach
      ->add_option("--gradients", a->gradients,
                   "number of examples whose gradients are measured (default 50)")
      ->check(count_range());
  auto* transfer =
      add("transfer",
          "evaluate a run's weights on a larger task without training: Pathfinder on Path-X",
          kHasWeights | kHasSplit | kHasData | kHasExamples);
  transfer->add_option("--to", a->to, "the task to evaluate on (default pathx)");
  transfer
      ->add_option("--positions", a->positions,
                   "stretched, continued, or both, separated by a comma (default both)")
      ->delimiter(',')
      ->check(CLI::IsMember({"stretched", "continued"}));
}

}  // namespace lra::cli

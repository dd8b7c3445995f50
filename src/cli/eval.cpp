// lra eval: accuracy, loss and confusion matrix of a finished or running run.
#include <cstdio>

#include "base/text_format.h"
#include "cli/command.h"
#include "training/loaded_run.h"

namespace lra::cli {
namespace {

struct EvalArguments {
  std::string run, split = "test", checkpoint = "last", data;
  bool other_data = false;
};

void print_text(const training::EvaluationResult& result, const EvalArguments& a) {
  std::printf("%s, %s split, weights of step %s\n  accuracy  %s on %s examples\n  loss      %s\n\n",
              a.run.c_str(), a.split.c_str(), thousands(result.summary.step).c_str(),
              percent(result.summary.accuracy).c_str(),
              thousands(result.summary.num_examples).c_str(),
              fixed(result.summary.loss, 4).c_str());
  std::vector<std::string> header = {"label"};
  for (size_t c = 0; c < result.confusion.size(); ++c) header.push_back("as " + std::to_string(c));
  TextTable table(header);
  for (size_t label = 0; label < result.confusion.size(); ++label) {
    std::vector<std::string> row = {std::to_string(label)};
    for (const int64_t count : result.confusion[label]) row.push_back(thousands(count));
    table.add_row(row);
  }
  std::printf("%s", table.text().c_str());
}

ExitCode eval(const Program& program, const EvalArguments& a) {
  const training::LoadedRun run(a.run, a.checkpoint, training::ModelPrecision::kAsTrained,
                                program.common.device);
  const auto dataset = training::open_run_data(run, {a.data, a.other_data, program.common.quiet});
  const auto result = training::evaluate_run(run, dataset, a.split, 0, program.common.quiet);
  if (result.stopped) return ExitCode::kStopped;
  if (program.common.json) {
    print_json({{"run", a.run},
                {"split", a.split},
                {"step", result.summary.step},
                {"accuracy", result.summary.accuracy},
                {"loss", json_number(result.summary.loss)},
                {"examples", result.summary.num_examples},
                {"confusion", result.confusion}});
  } else {
    print_text(result, a);
  }
  return ExitCode::kDone;
}

}  // namespace

void add_eval(CLI::App& app, Program& program) {
  auto a = std::make_shared<EvalArguments>();
  auto* command = add_command(app, program, "eval", "accuracy, loss and confusion matrix of a run",
                              [&program, a] { return eval(program, *a); });
  command->add_option("run", a->run, "a run folder")->required();
  command->add_option("--split", a->split, "train, val or test (default test)")
      ->check(CLI::IsMember({"train", "val", "test"}));
  command->add_option("--checkpoint", a->checkpoint,
                      "last, best, or a model.safetensors (default last)");
  command->add_option("--data", a->data, "folder of the data; default $LRA_DATA, else ./data");
  command->add_flag("--other-data", a->other_data,
                    "evaluate on data that the run was not made with");
}

}  // namespace lra::cli

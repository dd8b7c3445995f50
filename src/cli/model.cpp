// lra model compare: size against the base Transformer, and the division that follows.
#include "base/text_format.h"
#include "cli/command.h"
#include "training/settings/data_root.h"
#include "training/settings/fairness.h"
#include "training/settings/shipped_configs.h"

namespace lra::cli {
namespace {

struct CompareArguments {
  std::string task, model, data, preset = "release";
  std::vector<std::string> sets;
};

ExitCode compare(const Program& program, const CompareArguments& a) {
  const auto run = training::resolve_on_data(a.task, a.model, a.preset, 0,
                                             training::data_root(a.data), {}, a.sets);
  const auto result = training::judge(run, {}, "", training::edited_presets(a.task, a.model));
  const double ratio =
      static_cast<double>(result.num_parameters) / static_cast<double>(result.base_parameters);
  return print_result(program,
                      {{"task", a.task},
                       {"model", a.model},
                       {"preset", a.preset},
                       {"parameters", result.num_parameters},
                       {"base_parameters", result.base_parameters},
                       {"ratio", ratio},
                       {"division", result.division},
                       {"reason", result.division_reason}},
                      a.model + " on " + a.task + ", preset " + a.preset + "\n  parameters       " +
                          thousands(result.num_parameters) + "\n  base Transformer " +
                          thousands(result.base_parameters) + "\n  ratio            " +
                          fixed(ratio, 3) + "\n  division         " + result.division + ": " +
                          result.division_reason + "\n");
}

}  // namespace

void add_model(CLI::App& app, Program& program) {
  CLI::App* model = add_group(app, "model", "compare a model with the base Transformer");
  auto a = std::make_shared<CompareArguments>();
  auto* command =
      add_command(*model, program, "compare",
                  "print parameters, their ratio to the base Transformer's, and the division",
                  [&program, a] { return compare(program, *a); });
  command->add_option("task", a->task, "a task")->required();
  command->add_option("model", a->model, "a model")->required();
  command->add_option("--preset", a->preset, preset_help("release"));
  command->add_option("--data", a->data,
                      "folder of the data, from which the task custom takes its shape; default "
                      "$LRA_DATA, else ./data");
  add_set_option(*command, a->sets);
}

}  // namespace lra::cli

// The flags of the commands that do all their work with tensors.
#include "cli/compute.h"

#include "mixers/all.h"

namespace lra::cli {

void add_eval(CLI::App& app, Program& program) {
  auto a = std::make_shared<EvalArguments>();
  auto* command =
      add_command(app, program, "eval",
                  "evaluate a run: accuracy, where it fails, and the prediction of each example",
                  [&program, a] {
                    const training::StoredRun run = training::read_run({a->run});
                    const tasks::TaskSpec& spec = run.config.task_spec();
                    ConfigTable task = run.config.task_settings;
                    merge(task, settings_of("task", a->sets, std::string(spec.name)));
                    if (!a->sets.empty()) a->task = spec.resolve(task);
                    return eval(program, *a);
                  });
  command->add_option("run", a->run, "a run folder, or one that lra export wrote")->required();
  command->add_option("--split", a->split, "train, val or test (default test)")->check(one_split());
  add_weights(*command, a->weights);
  add_data_option(*command, a->data);
  command->add_option(
      "--predictions", a->predictions,
      "write prediction, probabilities and properties of each example to this CSV file");
  command->add_flag("--other-data", a->other_data, "evaluate on data other than the run's");
  add_set_option(*command, a->sets,
                 "task.KEY=VALUE: evaluate on data made for another setting, such as longer ones");
}

void add_export(CLI::App& app, Program& program) {
  auto a = std::make_shared<ExportArguments>();
  auto* command = add_command(
      app, program, "export",
      "write a run's weights, settings, record, card and checksums to a folder", [&program, a] {
        (void)training::read_run({a->run});
        return export_run(program, *a);
      });
  command->add_option("run", a->run, "a run folder")->required();
  command->add_option("--out", a->out, "folder to write; must not exist")->required();
  command->add_option("--checkpoint", a->weights.checkpoint,
                      "best, last or step_N (default: the one that was tested)");
}

void add_mixer(CLI::App& app, Program& program) {
  CLI::App* mixer = add_group(app, "mixer", "run one mixer on a tensor from a file");
  auto a = std::make_shared<MixerArguments>();
  auto* command = add_command(
      *mixer, program, "run", "apply a mixer to 'x' [B, L, D] of a safetensors file",
      [&program, a] {
        a->settings = mixers::find_mixer(a->name).resolve(settings_of("mixer", a->sets, a->name));
        return run_mixer(program, *a);
      });
  command->add_option("name", a->name, "a model")->required();
  command
      ->add_option(
          "--in", a->in,
          "safetensors with 'x' [B, L, D] (F32, BF16 or F64), optionally 'mask' [B, L] (U8 or "
          "BOOL, 1 = token, padding on the right), and all weights or none")
      ->required();
  command->add_option("--out", a->out, "safetensors to write: 'y' and the weights")->required();
  add_set_option(*command, a->sets, "mixer.KEY=VALUE: override a setting");
  command->add_option("--seed", a->seed, "seed of new weights (default 0)")->check(seed_range());
  command->add_option("--heads", a->heads, "attention heads (default 1)")->check(count_range());
  command->add_option("--head-dim", a->head_dim, "width of a head (default D / heads)")
      ->check(count_range());
  command
      ->add_option("--max-length", a->max_length,
                   "length that the weights are made for (default L)")
      ->check(CLI::Range(int64_t{1}, mixers::kMostTokens));
}

void add_info(CLI::App& app, Program& program) {
  add_command(app, program, "info", "print version, machine, threads and the kernels chosen",
              [&program] { return info(program); });
}

}  // namespace lra::cli

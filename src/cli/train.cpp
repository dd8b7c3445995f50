// lra train: one run, or the rest of one.
#include "base/command_text.h"
#include "base/launch_environment.h"
#include "cli/compute.h"
#include "training/settings/data_root.h"
#include "training/settings/weights_file.h"

namespace lra::cli {
namespace {

// Settings, and for a resumed run how they differ from those of its steps so far.
training::ChangedRun requested_config(const TrainArguments& a) {
  if (!a.resume.empty()) {
    if (training::is_exported(a.resume)) {
      refuse(a.resume, "was written by lra export: it has weights, and nothing to resume",
             "the folder of a run", "start a new run with its weights: --init-from " + a.resume);
    }
    return training::with_changes(training::read_run({a.resume}), a.sets);
  }
  if (a.task.empty() || a.model.empty()) {
    refuse("train", "task and model are missing", "lra train TASK MODEL",
           "list them with: " + command_text({"list"}));
  }
  return {.config = training::resolve_on_data(a.task, a.model, a.preset, a.seed,
                                              training::data_root(a.data), {}, a.sets)};
}

// `task`: with the name of its data.
std::string run_folder(const TrainArguments& a, const std::string& task) {
  if (!a.resume.empty()) return a.resume;
  if (!a.out.empty()) return a.out;
  return "runs/" + file_name_of(task) + "-" + file_name_of(a.model) + "-" + a.preset + "-s" +
         std::to_string(a.seed);
}

ExitCode train(const Program& program, TrainArguments a) {
  if (a.rank_backend == "nccl" && program.common.on_cpu()) {
    refuse("--rank-backend", "nccl sums on GPUs, and this run computes on the CPU", "gloo",
           "or add --device cuda");
  }
  const Launch launch = launch_of_this_process();
  // A launcher that starts the ranks again gives them the same command.
  if (launch.restarts > 0 && a.resume.empty()) a.go_on = true;
  training::ChangedRun wanted = requested_config(a);
  const training::RunFolder folder{run_folder(a, wanted.config.task)};
  return train(program, a, std::move(wanted), folder);
}

}  // namespace

void add_train(CLI::App& app, Program& program) {
  auto a = std::make_shared<TrainArguments>();
  auto* command = add_command(app, program, "train", "train, validate and test a model on a task",
                              [&program, a] { return train(program, *a); });
  auto* resume = command->add_option("--resume", a->resume, "resume the run in this folder");
  const auto option = [&](const char* name, auto& value, const std::string& help) {
    // A resumed run keeps the options it was started with.
    return command->add_option(name, value, help)->excludes(resume);
  };
  option("task", a->task, "a task (lra list tasks)");
  option("model", a->model, "a model (lra list models)");
  option("--preset", a->preset, preset_help("small"));
  add_data_option(*command, a->data);
  command
      ->add_flag("--go-on", a->go_on,
                 "resume the run in the folder if it has these settings, otherwise start it; "
                 "for jobs that are re-run with the same command")
      ->excludes(resume);
  auto* init_from = option("--init-from", a->init_from,
                           "start with the weights of this run, or of a model.safetensors; the run "
                           "is then in the free-for-all division, or self-pretrained if they come "
                           "from a run with train.objective=masked on the same data");
  command
      ->add_flag("--init-partial", a->init_partial,
                 "with --init-from: initialize at random the tensors that have no counterpart of "
                 "the same shape")
      ->needs(init_from);
  add_accept_option(*command, a->accept)->excludes(resume);
  option("--out", a->out, "run folder; default runs/TASK-MODEL-PRESET-sSEED");
  option("--seed", a->seed, "seed of weights, data order and dropout (default 0)")
      ->check(seed_range());
  command
      ->add_option("--histograms", a->histogram_every,
                   "steps between histograms of weights and gradients for TensorBoard")
      ->check(positive_range());
  command->add_option("--profile", a->profile,
                      "write a trace of some steps for Perfetto or chrome://tracing");
  command->add_option("--profile-steps", a->profile_steps, "steps in the trace (default 5)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--rank-timeout", a->rank_timeout_s,
                   "seconds to wait for another rank of the same run, started by torchrun or "
                   "srun (default 600)")
      ->check(CLI::Range(1, 1000000));
  command
      ->add_option("--rank-backend", a->rank_backend,
                   "gloo (default) sums gradients of ranks in main memory, nccl on their GPUs")
      ->check(CLI::IsMember({"gloo", "nccl"}));
  command
      ->add_option("--memory-limit", a->memory_limit,
                   "bytes that train.memory_check may assume, even if more are free: the rest is "
                   "left to other runs on this machine")
      ->check(positive_range());
  command
      ->add_option("--stop-after", a->stop_after,
                   "stop after this step; the schedule does not change, and --resume continues")
      ->check(count_range());
  command->add_flag("--no-test", a->no_test,
                    "stop before the test: --resume makes it, 'lra tune' only for chosen settings");
  add_set_option(
      *command, a->sets,
      "KEY=VALUE: override a setting; repeatable. With --resume only settings of the training "
      "length, schedule, validations or checkpoints: the run continues with them");
}

}  // namespace lra::cli

// lra completion: a script that completes commands, flags, tasks and models in bash and zsh.
#include <cstdio>

#include "cli/command.h"
#include "mixers/all.h"
#include "tasks/all.h"

namespace lra::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string task_names() {
  std::vector<std::string> names;
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) names.emplace_back(spec->name);
  return joined(names);
}

std::string model_names() {
  std::vector<std::string> names;
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) names.emplace_back(spec->name);
  return joined(names);
}

// Words that may follow `command`: its subcommands and flags, tasks and models where an argument is
// one.
std::string words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(below->get_name());
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    const std::string argument = option->get_name(true, false);
    if (argument == "task" || argument == "topic") words.push_back(task_names());
    if (argument == "model" || argument == "topic") words.push_back(model_names());
  }
  return joined(words);
}

// One line of the script's `case` for each command, "train" or "data import".
std::string cases_of(const CLI::App& command, const std::string& path) {
  std::string text = "    \"" + path + "\") words=\"" + words_of(command) + "\" ;;\n";
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    text += cases_of(*below, path.empty() ? below->get_name() : path + " " + below->get_name());
  }
  return text;
}

// Commands whose next word is a command.
std::string groups_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_subcommands([](const CLI::App*) { return true; }).empty()) {
      names.push_back(command->get_name());
    }
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

std::string script(const CLI::App& app) {
  return R"(# Completion of lra. bash: source <(lra completion); zsh: the same behind
# autoload -U compinit bashcompinit && compinit && bashcompinit
_lra() {
  local path="" words="" current="${COMP_WORDS[COMP_CWORD]}"
  if [[ $COMP_CWORD -gt 1 ]]; then path="${COMP_WORDS[1]}"; fi
  case "$path" in
    )" + groups_of(app) +
         R"()
      if [[ $COMP_CWORD -gt 2 ]]; then path="$path ${COMP_WORDS[2]}"; fi ;;
  esac
  case "$path" in
)" + cases_of(app, "") +
         R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o bashdefault -o default -F _lra lra
)";
}

}  // namespace

void add_completion(CLI::App& app, Program& program) {
  add_command(app, program, "completion",
              "print a completion script: source <(lra completion) in bash or zsh", [&app] {
                std::printf("%s", script(app).c_str());
                return ExitCode::kDone;
              });
}

}  // namespace lra::cli

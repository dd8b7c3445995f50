// lra completion: a script that completes commands, flags and their values, tasks, models, settings
// and run folders in bash and zsh.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <set>

#include "checks/check_table.h"
#include "cli/command.h"
#include "mixers/all.h"
#include "tasks/all.h"
#include "training/settings/presets.h"
#include "training/settings/setting_list.h"

namespace lra::cli {
namespace {

// Stands for the folders of runs, below what was typed or below runs/. Their names never become
// `words`, which compgen -W expands: $(...) in a name would be executed.
constexpr const char* kRuns = "@runs";

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

// "train.steps=", each once.
std::string setting_names() {
  std::set<std::string> names;
  for (const char* section : {"train", "model", "task", "mixer", "groups"}) {
    for (const training::Setting& setting : training::find_settings(section))
      names.insert(setting.name + "=");
  }
  return joined({names.begin(), names.end()});
}

std::string check_names() {
  std::vector<std::string> names;
  for (const checks::Check& check : checks::all_checks()) names.emplace_back(check.name);
  return joined(names);
}

std::string all_presets() {
  std::vector<std::string> names = training::preset_names("listops");
  names.insert(names.end(), std::begin(training::kModelPresets), std::end(training::kModelPresets));
  return joined(names);
}

// "{text,md,csv}", as CLI11 describes an option with few values.
std::string few_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return "";
  std::string words = type.substr(begin + 1, end - begin - 1);
  std::ranges::replace(words, ',', ' ');
  return words;
}

// Commands for the shell that set `words` to what may follow an option, or stand in the place of an
// argument; empty if that is a file.
std::string values_of(const CLI::Option& option) {
  const std::vector<std::string>& flags = option.get_lnames();
  const std::string name = flags.empty() ? option.get_name(true, false) : "--" + flags[0];
  if (const std::string values = few_values(option); !values.empty()) return values;
  if (name == "--preset") return all_presets();
  if (name == "--device") return "cpu cuda";
  if (name == "--set") return setting_names();
  if (name == "--accept") return check_names();
  if (name == "--checkpoint") return "best last";
  if (name == "task") return task_names();
  if (name == "model" || name == "--models") return joined(mixers::mixer_names());
  if (name == "topic")
    return task_names() + " " + joined(mixers::mixer_names()) + " " + check_names();
  if (name == "run" || name == "record" || name == "paths" || name == "--resume" ||
      name == "--init-from") {
    return kRuns;
  }
  return "";
}

// Words that may follow `command`: its subcommands and flags, and values of its arguments.
std::string words_of(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(below->get_name());
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    if (option->get_positional()) words.push_back(values_of(*option));
  }
  return joined(words);
}

// One line of the script's `case` for each option that has known values; those of several commands
// that share it are the same.
std::string option_cases(const CLI::App& app) {
  std::map<std::string, std::string> cases;
  const auto add = [&](const auto& self, const CLI::App& command) -> void {
    for (const CLI::Option* option : command.get_options()) {
      const std::string values = option->get_lnames().empty() ? "" : values_of(*option);
      if (!values.empty()) cases["--" + option->get_lnames()[0]] = values;
    }
    for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; }))
      self(self, *below);
  };
  add(add, app);
  std::string text;
  for (const auto& [name, values] : cases)
    text += "    " + name + ") words=\"" + values + "\" ;;\n";
  return text;
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
_lra_runs() {
  local record begin="${1:-runs/}"
  for record in "$begin"*/record.json "$begin"*/*/record.json; do
    if [[ ! -e $record ]]; then continue; fi
    printf -v record %q "${record%/record.json}"
    COMPREPLY+=("$record")
  done
}
_lra() {
  local path="" words="" current="${COMP_WORDS[COMP_CWORD]}" last="${COMP_WORDS[COMP_CWORD-1]}"
  if [[ $COMP_CWORD -gt 1 ]]; then path="${COMP_WORDS[1]}"; fi
  case "$path" in
    )" + groups_of(app) +
         R"()
      if [[ $COMP_CWORD -gt 2 ]]; then path="$path ${COMP_WORDS[2]}"; fi ;;
  esac
  case "$path" in
)" + cases_of(app, "") +
         R"(  esac
  case "$last" in
)" + option_cases(app) +
         R"(  esac
  COMPREPLY=($(compgen -W "${words/@runs/}" -- "$current"))
  if [[ $words == *@runs* ]]; then _lra_runs "$current"; fi
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
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

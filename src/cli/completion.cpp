// lra completion: a script that completes commands, flags and their values, tasks, models, settings
// and run folders in bash and zsh.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "checks/check_table.h"
#include "cli/command.h"
#include "mixers/all.h"
#include "tasks/all.h"
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

std::string spec_names(const auto& specs) {
  std::vector<std::string> names;
  for (const auto& spec : specs) names.emplace_back(spec->name);
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
  if (name == "--preset") return joined(all_preset_names());
  if (name == "--device") return "cpu cuda";
  if (name == "--set") return setting_names();
  if (name == "--accept") return check_names();
  if (name == "--checkpoint") return "best last";
  if (name == "task") return spec_names(tasks::all_tasks());
  if (name == "model" || name == "--models") return spec_names(mixers::kAllMixers);
  if (name == "topic")
    return spec_names(tasks::all_tasks()) + " " + spec_names(mixers::kAllMixers) + " " +
           check_names();
  if (name == "run" || name == "record" || name == "paths" || name == "--resume" ||
      name == "--init-from") {
    return kRuns;
  }
  return "";
}

// The `words` of each command ("data import ") and of each option that has known values.
struct Cases {
  std::map<std::string, std::string, std::greater<>> commands;  // "data import " before "data "
  std::map<std::string, std::string> options;

  void add(const CLI::App& command, const std::string& path) {
    std::vector<std::string> words;
    for (const CLI::App* below : command.get_subcommands({})) {
      words.push_back(below->get_name());
      add(*below, path + below->get_name() + " ");
    }
    for (const CLI::Option* option : command.get_options()) {
      const std::string values = values_of(*option);
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      if (option->get_positional()) {
        words.push_back(values);
      } else if (!values.empty()) {
        options["--" + option->get_lnames()[0]] = values;
      }
    }
    commands[path] = joined(words);
  }
};

std::string script(const CLI::App& app) {
  Cases cases;
  cases.add(app, "");
  std::string commands, options;
  for (const auto& [path, words] : cases.commands)
    commands += "    \"" + path + "\"*) words=\"" + words + "\" ;;\n";
  for (const auto& [name, values] : cases.options)
    options += "    " + name + ") words=\"" + values + "\" ;;\n";
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
  if [[ $COMP_CWORD -gt 1 ]]; then path="${COMP_WORDS[1]} "; fi
  if [[ $COMP_CWORD -gt 2 ]]; then path="$path${COMP_WORDS[2]} "; fi
  case "$path" in
)" + commands +
         R"(  esac
  case "$last" in
)" + options +
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

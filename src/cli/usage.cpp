// Messages about a command line that is not understood.
#include <algorithm>
#include <set>

#include "base/config.h"
#include "cli/command.h"
#include "mixers/all.h"
#include "tasks/all.h"
#include "training/settings/setting_list.h"

namespace lra::cli {
namespace {

// The command that was given, down to its verb.
const CLI::App* given_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command;
}

// "--resume: 1 required TEXT missing", in words and with the purpose of the option.
std::string missing_value(const CLI::App& app, const std::string& text) {
  const std::string name = text.substr(0, text.find(": "));
  const CLI::Option* option = given_command(app)->get_option_no_throw(name);
  return option ? name + " needs a value: " + option->get_description() : text;
}

// "--steps": how that setting is given; empty for a flag that is no setting.
std::string as_setting(const std::string& word) {
  if (!word.starts_with("--")) return "";
  const std::string flag = word.substr(0, word.find('='));
  std::set<std::string> of_all, of_some;  // tasks and models
  for (const training::Setting& setting : training::find_settings(flag.substr(2)))
    (setting.owners.empty() ? of_all : of_some).insert(setting.name);
  std::string ways;
  for (const std::string& name : of_all.empty() ? of_some : of_all)
    ways += (ways.empty() ? "" : " or ") + ("--set " + name + "=VALUE");
  return ways.empty() ? "" : "'" + flag + "' is a setting; give it as " + ways;
}

// The flag that takes this task or model; empty for another word, or if the command has none.
std::string flag_of_name(const CLI::App& command, const std::string& word) {
  const auto models = mixers::mixer_names();
  const auto is_task = [&](const auto* spec) { return spec->name == word; };
  const char* flag = std::ranges::count(models, word) > 0               ? "--models"
                     : std::ranges::any_of(tasks::all_tasks(), is_task) ? "--task"
                                                                        : "";
  return *flag != '\0' && command.get_option_no_throw(flag) ? flag : "";
}

// A word that is neither a command nor a flag, and the nearest one that exists.
std::string unexpected(const CLI::App& app, const std::string& word) {
  const CLI::App* command = given_command(app);
  const bool has_settings = command->get_option_no_throw("--set") != nullptr;
  if (has_settings && word.find('=') != std::string::npos && !word.starts_with('-'))
    return "unexpected '" + word + "'; every setting needs its own --set";
  if (const std::string flag = flag_of_name(*command, word); !flag.empty())
    return "unexpected '" + word + "'; give it as " + flag + " " + word;
  std::vector<std::string> known;
  for (const CLI::App* below : command->get_subcommands({})) known.push_back(below->get_name());
  const bool is_flag = word.starts_with('-') || known.empty();
  if (is_flag) known.clear();
  for (const CLI::Option* option : command->get_options()) {
    const bool is_shown = !option->get_lnames().empty() && !option->get_group().empty();
    if (is_flag && is_shown) known.push_back("--" + option->get_lnames()[0]);
  }
  if (std::ranges::count(known, word) > 0)
    return "unexpected '" + word + "' here; flags go after their command";
  if (has_settings && nearest_name(word, known).empty()) {
    if (const std::string line = as_setting(word); !line.empty()) return line;
  }
  const std::string hint =
      is_flag && has_settings ? "; settings are given as --set train.batch_size=8" : "";
  return "unexpected '" + word + "'; " + suggestion(word, known) + hint;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> left = app.remaining(true);
  // A misspelled word first, even when CLI11 complains of the missing right one, or of what came
  // after it.
  const bool is_extra = !left.empty() && (dynamic_cast<const CLI::ExtrasError*>(&error) ||
                                          dynamic_cast<const CLI::ExcludesError*>(&error) ||
                                          dynamic_cast<const CLI::RequiredError*>(&error));
  if (is_extra) return unexpected(app, left[0]);
  const std::string text = error.what();
  const std::string resume = "--resume excludes ";
  if (text.starts_with(resume)) {
    return "--resume keeps what the run was started with; leave out " + text.substr(resume.size()) +
           ", or start a new run";
  }
  if (text == "A subcommand is required") {
    std::string verbs;
    for (const CLI::App* below : given_command(app)->get_subcommands({}))
      verbs += (verbs.empty() ? "" : ", ") + below->get_name();
    return "a subcommand is missing; known: " + verbs;
  }
  return text.ends_with(" missing") ? missing_value(app, text) : text;
}

}  // namespace lra::cli

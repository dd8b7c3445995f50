// lra help: every setting of a task or a model, with default and range; a setting by its name; or a
// command's flags.
#include <algorithm>
#include <iterator>

#include "checks/check_table.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "mixers/all.h"
#include "models/model_config.h"
#include "tasks/all.h"
#include "training/settings/group_config.h"
#include "training/settings/setting_list.h"

namespace lra::cli {
namespace {

std::vector<training::Setting> section_settings(const std::string& section,
                                                const std::vector<FieldInfo>& fields) {
  std::vector<training::Setting> settings;
  for (const FieldInfo& field : fields) settings.push_back({section + "." + field.name, "", field});
  return settings;
}

// A table of settings, with a column of the tasks or models that have them unless all have all.
std::string settings_text(const std::vector<training::Setting>& settings) {
  if (settings.empty()) return "";
  const auto is_owned = [](const training::Setting& setting) { return !setting.owners.empty(); };
  const bool names_owners = std::ranges::any_of(settings, is_owned);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, owners, field] : settings) {
    rows.push_back({name, field.type, field.default_value, field.range, field.help});
    if (names_owners) rows.back().push_back(owners.empty() ? "all" : owners);
  }
  std::vector<std::string> header = {"setting", "type", "default", "range", "meaning"};
  if (names_owners) header.emplace_back("tasks or models");
  return fitted_table(header, rows, terminal_width());
}

Json settings_json(const std::vector<training::Setting>& settings) {
  Json rows = Json::array();
  for (const auto& [name, owners, field] : settings) {
    rows.push_back({{"setting", name},
                    {"type", field.type},
                    {"default", field.default_value},
                    {"range", field.range},
                    {"meaning", field.help},
                    {"of", owners}});
  }
  return rows;
}

constexpr const char* kPresetsChangeThem =
    "\nPresets change these defaults; --set SETTING=VALUE changes one for a run.\n";

ExitCode show(const Program& program, const std::string& title,
              const std::vector<training::Setting>& settings) {
  return print_result(program, settings_json(settings),
                      title + settings_text(settings) + kPresetsChangeThem);
}

// Shows the settings of the section that has the command's name, too; training has those of the
// model as well.
ExitCode show_command(const Program& program, const CLI::App& command) {
  const std::string name = command.get_name();
  std::vector<training::Setting> settings;
  if (name == "train") settings = training::find_settings("model");
  for (training::Setting& setting : training::find_settings(name)) {
    if (setting.name.starts_with(name + ".")) settings.push_back(std::move(setting));
  }
  const std::string usage = command.help("lra");
  const Json json = {{"command", name}, {"usage", usage}, {"settings", settings_json(settings)}};
  if (settings.empty()) return print_result(program, json, usage);
  return print_result(program, json, usage + "\n" + settings_text(settings) + kPresetsChangeThem);
}

ExitCode show_check(const Program& program, const checks::Check& check) {
  const std::string name(check.name), finds(check.finds), advice(check.advice);
  const bool can_accept = check.level == checks::Level::kWarning;
  const std::string acceptance =
      can_accept ? "\nlra train TASK MODEL --accept " + name + " accepts it.\n" : "";
  return print_result(
      program, {{"check", name}, {"finds", finds}, {"advice", advice}, {"can_accept", can_accept}},
      name + ", a check of data\n\nfinds  " + finds + "\nto do  " + advice + "\n" + acceptance);
}

ExitCode help(const Program& program, const CLI::App& app, const std::string& topic) {
  if (topic.empty()) return print_result(program, {{"usage", app.help()}}, app.help());
  std::vector<std::string> known;
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    known.emplace_back(spec->name);
    if (spec->name != topic) continue;
    const std::string data = spec->sources.empty() ? "make " + topic + " --out DIR draws examples."
                                                   : "import " + topic + " FROM --out DIR reads " +
                                                         std::string(spec->sources) + ".";
    return show(program,
                std::string(spec->title) + ": " + std::string(spec->summary) + "\n" +
                    std::string(spec->paper) + "\n\nlra data " + data + "\n\n",
                section_settings("task", spec->describe()));
  }
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    known.emplace_back(spec->name);
    if (spec->name != topic) continue;
    std::vector<training::Setting> settings = section_settings("mixer", spec->describe());
    const auto add = [&](const std::string& section, const std::vector<FieldInfo>& fields) {
      std::ranges::move(section_settings(section, fields), std::back_inserter(settings));
    };
    add("model", describe_config<models::ModelConfig>());
    for (const mixers::GroupSpec& group : spec->groups)
      add("groups." + std::string(group.name), describe_config(training::group_defaults(group)));
    return show(program,
                std::string(spec->title) + ", " + std::string(spec->family) + ", cost " +
                    std::string(spec->cost) + "\n" + std::string(spec->paper) + "\n\n",
                settings);
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    known.push_back(command->get_name());
    if (command->get_name() == topic) return show_command(program, *command);
  }
  if (const auto settings = training::find_settings(topic); !settings.empty())
    return show(program, "", settings);
  for (const checks::Check& check : checks::all_checks()) {
    known.emplace_back(check.name);
    if (check.name == topic) return show_check(program, check);
  }
  const std::string setting =
      nearest_name(topic, known).empty() ? training::setting_suggestion(topic) : "";
  refuse("help", "unknown topic '" + topic + "'",
         "a task, a model, a command, a setting or a check of data",
         setting.empty() ? suggestion(topic, known) : setting);
}

}  // namespace

void add_help(CLI::App& app, Program& program) {
  auto topic = std::make_shared<std::string>();
  auto* command = add_command(
      app, program, "help",
      "explain the settings of a task or a model, one setting, or the flags of a command",
      [&program, &app, topic] { return help(program, app, *topic); });
  command->add_option("topic", *topic,
                      "a task, a model, a command, a setting (train.steps, or steps), a group of "
                      "settings (train, model, mixer, task, groups) or a check of data (copies)");
}

}  // namespace lra::cli

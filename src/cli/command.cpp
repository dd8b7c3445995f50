#include "cli/command.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/command_text.h"
#include "base/parsed_number.h"
#include "data/manifest.h"
#include "io/progress.h"
#include "io/toml.h"
#include "mixers/all.h"
#include "report/tables/literature.h"
#include "training/settings/presets.h"
#include "training/settings/shipped_configs.h"

namespace lra::cli {

CLI::App* add_command(CLI::App& parent, Program& program, const std::string& name,
                      const std::string& help, std::function<ExitCode()> action) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer("");  // not that of the program
  CommonOptions& common = program.common;
  command->add_flag("--json", common.json, "print the result as JSON on standard output");
  command->add_flag("--quiet", common.quiet, "print only the result: no progress bars or messages");
  command
      ->add_option(
          "--threads", common.threads,
          "number of compute threads; default: all cores, or as many as a CPU quota allows")
      ->check(CLI::Range(1, 1024));
  command->add_option("--device", common.device,
                      "device to compute on: cpu, cuda, or cuda:N (default cpu)");
  command->callback([&program, action = std::move(action)] { program.action = action; });
  return command;
}

void add_common_words(std::vector<std::string>& words, const CommonOptions& common) {
  if (common.quiet) words.push_back("--quiet");
  if (common.threads > 0) words.insert(words.end(), {"--threads", std::to_string(common.threads)});
  words.insert(words.end(), {"--device", common.device});
}

CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& help) {
  CLI::App* group = app.add_subcommand(name, help);
  group->require_subcommand(1);
  group->footer("");
  return group;
}

CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& sets,
                            const std::string& help) {
  return command.add_option("--set", sets, help + "; the last value of a setting counts")
      ->take_all()
      ->allow_extra_args(false);
}

ConfigTable settings_of(const std::string& section, const std::vector<std::string>& sets,
                        const std::string& help) {
  ConfigTable all;
  for (const std::string& set : sets) apply_override(all, set);
  for (const auto& [key, value] : all) {
    if (key == section && value.as_table()) continue;
    refuse(value.where, "unknown section '" + key + "'", section + ".SETTING=VALUE",
           "list the settings with: " + command_text({"help", help}));
  }
  return all.table(section);
}

void add_data_option(CLI::App& command, std::string& data) {
  command.add_option("--data", data, "folder of the data; default $LRA_DATA, else ./data");
}

std::string preset_help(const std::string& preset) {
  return "paper, release, small; published, pretraining or fine_tuning if the model has it "
         "(default " +
         preset + ")";
}

std::vector<std::string> all_preset_names() {
  std::vector<std::string> names = training::preset_names("listops");
  names.insert(names.end(), std::begin(training::kModelPresets), std::end(training::kModelPresets));
  return names;
}

CLI::Option* add_accept_option(CLI::App& command, std::vector<std::string>& accepted) {
  return command
      .add_option("--accept", accepted,
                  "NAME[,NAME]: checks of the data (docs/checks.md) whose warnings are accepted: "
                  "they mark no result, and the record shows them")
      ->delimiter(',')
      ->take_all()
      ->allow_extra_args(false);
}

void add_weights(CLI::App& command, training::WeightsChoice& weights) {
  command.add_option(
      "--checkpoint", weights.checkpoint,
      "best (validation), last, step_N, or a model.safetensors (default: the weights "
      "that the run tested, which train.test_checkpoint names)");
  command.add_flag("--foreign-weights", weights.foreign,
                   "accept weights of another run; the result says so");
}

CLI::Range count_range() { return CLI::Range(int64_t{1}, int64_t{1000000000}); }

namespace {

// Accepts `least` to `most`. CLI::Range would take a number past the type for the largest one that
// fits, and would accept NaN.
template <typename T>
CLI::Validator range_between(int64_t least, int64_t most) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  const auto check = [least, most, range](const std::string& text) -> std::string {
    const auto value = parsed_number<T>(text);
    if (value && *value >= static_cast<T>(least) && *value <= static_cast<T>(most)) return "";
    return "Value " + text + " not in range " + range;
  };
  return CLI::Validator(check, range, "");
}

}  // namespace

CLI::Validator seed_range() { return range_between<int64_t>(0, INT64_MAX); }

CLI::Validator positive_range() { return range_between<int64_t>(1, INT64_MAX); }

CLI::IsMember one_split() {
  return CLI::IsMember(std::vector<std::string>(kSplitNames.begin(), kSplitNames.end()));
}

CLI::Validator seconds_range() { return range_between<double>(0, 3600); }

std::string file_name_of(std::string model) {
  std::ranges::replace(model, ':', '.');
  return model;
}

report::Literature published_results() {
  const std::string name = "literature.json";
  const std::string edited = training::edited_config(name);
  if (!edited.empty()) print_message(edited + ": its figures are shown as unverified");
  std::map<std::string, std::string> families;
  for (const mixers::LayerSpec* spec : mixers::kAllMixers)
    families.emplace(spec->name, spec->family);
  return report::read_literature(training::config_folder() + "/" + name, std::move(families),
                                 edited);
}

void refuse(const std::string& where, const std::string& what, const std::string& expected,
            const std::string& advice) {
  throw Error({.where = where, .what = what, .expected = expected, .advice = advice});
}

void print_json(const Json& value) { std::printf("%s\n", json_text(value, 2).c_str()); }

ExitCode print_result(const Program& program, const Json& json, const std::string& text) {
  if (program.common.json) {
    print_json(json);
  } else {
    std::printf("%s", text.c_str());
  }
  return ExitCode::kDone;
}

}  // namespace lra::cli

// The common flags, and the registration of subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/json.h"
#include "records/run_record.h"
#include "training/settings/run_folder.h"

namespace lra::report {
struct Literature;
}

namespace lra::cli {

struct CommonOptions {
  bool json = false;           // machine-readable result on standard output, nothing else there
  bool quiet = false;          // no progress on standard error
  int threads = 0;             // 0: default_threads()
  std::string device = "cpu";  // --device; with its number, once it was found: "cuda:0"
  std::vector<std::string> argv;

  bool on_cpu() const { return device == "cpu"; }
};

// The action of the chosen subcommand; set by its parser, run by main.
struct Program {
  CommonOptions common;
  std::function<ExitCode()> action;
};

// Adds a subcommand with the common flags. `action` runs when it was chosen.
CLI::App* add_command(CLI::App& parent, Program& program, const std::string& name,
                      const std::string& help, std::function<ExitCode()> action);

// The flags with which another process of this program has these options.
void add_common_words(std::vector<std::string>& words, const CommonOptions& common);

// Adds a command that needs a verb: add_command() with it as the parent.
CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& help);

// "--set KEY=VALUE", any number of times, one value each: a word after it is not a second value.
CLI::Option* add_set_option(CLI::App& command, std::vector<std::string>& sets,
                            const std::string& help = "KEY=VALUE: override a setting");

// [section] of the --set assignments. Throws lra::Error if they hold another one; `lra help HELP`
// lists its settings.
ConfigTable settings_of(const std::string& section, const std::vector<std::string>& sets,
                        const std::string& help);

// "--data" of the commands that read data.
void add_data_option(CLI::App& command, std::string& data);

// Help of "--preset"; `preset` is the default.
std::string preset_help(const std::string& preset);

// Every preset that a task or a model may have.
std::vector<std::string> all_preset_names();

// "--accept NAME[,NAME]": checks whose warnings about data are accepted.
CLI::Option* add_accept_option(CLI::App& command, std::vector<std::string>& accepted);

// "--checkpoint" and "--foreign-weights".
void add_weights(CLI::App& command, training::WeightsChoice& weights);

// Checks of numbers, with messages that give the range as whole numbers.
CLI::Range count_range();         // 1 to 10^9
CLI::Validator positive_range();  // 1 to the largest of 64 bits
CLI::Validator seed_range();      // 0 to the largest a run's config can hold
CLI::Validator seconds_range();   // 0 to 3600, fractions too

CLI::IsMember one_split();  // train, val or test

// The name of a model in a path: that of a Python class has a dot for its colon.
std::string file_name_of(std::string model);

void print_json(const Json& value);

// The end of a command: prints its result, as JSON with --json, else as text.
ExitCode print_result(const Program& program, const Json& json, const std::string& text);

// The value, or null.
template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// The results of configs/literature.json. If it is not the file that this program was built with,
// its figures are unverified and standard error says so.
report::Literature published_results();

// Throws lra::Error.
[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& expected = "", const std::string& advice = "");

// The message about a command line that is not understood, without the reference to help.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

// Each adds a command to the program.
using AddCommand = void(CLI::App& app, Program& program);
AddCommand add_train, add_eval, add_export, add_analyze, add_reproduce, add_suite, add_tune,
    add_report, add_data, add_bench, add_model, add_mixer, add_list, add_help, add_info,
    add_completion;

}  // namespace lra::cli

#include "cli/usage.h"

#include <algorithm>

#include "base/command_text.h"
#include "base/config.h"
#include "training/settings/setting_list.h"

namespace lra::cli {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

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

// The line that was typed, with `words` instead of the `count` ones at `place`.
std::string retyped(std::vector<std::string> argv, size_t place, size_t count,
                    const std::vector<std::string>& words) {
  const auto begin = argv.begin() + static_cast<std::ptrdiff_t>(place);
  const auto after = argv.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
  argv.insert(after, words.begin(), words.end());
  argv.erase(argv.begin());  // the program
  return command_text(argv);
}

// The settings that "--batch-size" may mean.
std::vector<std::string> settings_named(const std::string& flag) {
  std::vector<std::string> names;
  for (const training::Setting& setting : training::find_settings(flag))
    if (!has(names, setting.name)) names.push_back(setting.name);
  return names;
}

// "--steps 10": the line with --set train.steps=10 instead; empty for a flag that is no setting.
std::string with_set(const std::string& word, const std::vector<std::string>& argv) {
  const auto found = std::ranges::find(argv, word);
  if (found == argv.end() || !word.starts_with("--")) return "";
  const size_t equals = word.find('='), place = static_cast<size_t>(found - argv.begin());
  const std::vector<std::string> names = settings_named(word.substr(2, equals - 2));
  if (names.empty()) return "";
  const bool has_value =
      equals == std::string::npos && place + 1 < argv.size() && !argv[place + 1].starts_with("--");
  const std::string value = equals != std::string::npos ? word.substr(equals + 1)
                            : has_value                 ? argv[place + 1]
                                                        : "VALUE";
  std::string others;
  for (size_t i = 1; i < names.size(); ++i) others += (i == 1 ? "" : ", ") + names[i];
  return "'" + word.substr(0, equals) + "' is a setting; type: " +
         retyped(argv, place, has_value ? 2 : 1, {"--set", names[0] + "=" + value}) +
         (others.empty() ? "" : " (or " + others + ")");
}

// A word that is neither a command nor a flag, and the nearest one that exists.
std::string unexpected(const CLI::App& app, const std::string& word,
                       const std::vector<std::string>& argv) {
  const CLI::App* command = given_command(app);
  const bool has_settings = command->get_option_no_throw("--set") != nullptr;
  if (has_settings && word.find('=') != std::string::npos && !word.starts_with('-'))
    return "unexpected '" + word + "'; every setting needs its own --set";
  std::vector<std::string> known;
  for (const CLI::App* below : command->get_subcommands({})) known.push_back(below->get_name());
  const bool is_flag = word.starts_with('-') || known.empty();
  if (is_flag) known.clear();
  for (const CLI::Option* option : command->get_options()) {
    const bool is_shown = !option->get_lnames().empty() && !option->get_group().empty();
    if (is_flag && is_shown) known.push_back("--" + option->get_lnames()[0]);
  }
  if (has(known, word)) return "unexpected '" + word + "' here; flags go after their command";
  if (has_settings && nearest_name(word, known).empty()) {
    if (const std::string line = with_set(word, argv); !line.empty()) return line;
  }
  const std::string hint =
      is_flag && has_settings ? "; settings are given as --set train.batch_size=8" : "";
  return "unexpected '" + word + "'; " + suggestion(word, known) + hint;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error,
                          const std::vector<std::string>& argv) {
  const std::vector<std::string> left = app.remaining(true);
  // A misspelled word first, even when CLI11 complains of the missing right one, or of what came
  // after it.
  const bool is_extra = !left.empty() && (dynamic_cast<const CLI::ExtrasError*>(&error) ||
                                          dynamic_cast<const CLI::ExcludesError*>(&error) ||
                                          dynamic_cast<const CLI::RequiredError*>(&error));
  if (is_extra) return unexpected(app, left[0], argv);
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

// lra help: every setting of a task or a model, with default and range; or a command's flags.
#include <cstdio>

#include "cli/command.h"
#include "cli/terminal.h"
#include "mixers/all.h"
#include "models/model_config.h"
#include "tasks/all.h"
#include "training/group_config.h"

namespace lra::cli {
namespace {

struct Section {
  std::string name;
  std::vector<FieldInfo> fields;
};

void print_sections(const std::vector<Section>& sections) {
  std::vector<std::vector<std::string>> rows;
  for (const Section& section : sections) {
    for (const FieldInfo& f : section.fields) {
      rows.push_back({section.name + "." + f.name, f.type, f.default_value, f.range, f.help});
    }
  }
  if (rows.empty()) return;
  const std::vector<std::string> header = {"setting", "type", "default", "range", "meaning"};
  std::printf("\n%s", fitted_table(header, rows, terminal_width()).c_str());
}

Json sections_json(const std::vector<Section>& sections) {
  Json rows = Json::array();
  for (const Section& section : sections) {
    for (const FieldInfo& f : section.fields) {
      rows.push_back({{"setting", section.name + "." + f.name},
                      {"type", f.type},
                      {"default", f.default_value},
                      {"range", f.range},
                      {"meaning", f.help}});
    }
  }
  return rows;
}

ExitCode show(const Program& program, const std::string& title,
              const std::vector<Section>& sections) {
  if (program.common.json) {
    print_json(sections_json(sections));
  } else {
    std::printf("%s\n", title.c_str());
    print_sections(sections);
    std::printf("\nPresets change these defaults; --set SETTING=VALUE changes one for a run.\n");
  }
  return ExitCode::kDone;
}

ExitCode show_command(const Program& program, const CLI::App& command) {
  std::vector<Section> sections;
  if (command.get_name() == "train") {
    sections = {{"model", describe_config<models::ModelConfig>()},
                {"train", describe_config<training::TrainConfig>()}};
  }
  if (program.common.json) {
    print_json({{"command", command.get_name()},
                {"usage", command.help("lra")},
                {"settings", sections_json(sections)}});
  } else {
    std::printf("%s", command.help("lra").c_str());
    print_sections(sections);
  }
  return ExitCode::kDone;
}

// All that `lra help` knows, a line each.
ExitCode show_topics(const Program& program, const CLI::App& app) {
  if (!program.common.json) {
    std::printf("%s", app.help().c_str());
    return ExitCode::kDone;
  }
  Json topics = {{"tasks", Json::array()}, {"models", Json::array()}, {"commands", Json::array()}};
  const auto add = [&](const char* kind, std::string_view name, std::string_view what) {
    topics[kind].push_back({{"name", name}, {"what", what}});
  };
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) add("tasks", spec->name, spec->summary);
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) add("models", spec->name, spec->title);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    add("commands", command->get_name(), command->get_description());
  print_json(topics);
  return ExitCode::kDone;
}

ExitCode help(const Program& program, const CLI::App& app, const std::string& topic) {
  std::vector<std::string> known;
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    known.emplace_back(spec->name);
    if (spec->name != topic) continue;
    return show(program,
                std::string(spec->title) + ": " + std::string(spec->summary) + "\n" +
                    std::string(spec->paper) + "\n\nlra data import " + topic +
                    " FROM --out DIR reads " + std::string(spec->sources) + ".",
                {{"task", spec->describe()}});
  }
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    known.emplace_back(spec->name);
    if (spec->name != topic) continue;
    std::vector<Section> sections = {{"mixer", spec->describe()},
                                     {"model", describe_config<models::ModelConfig>()}};
    for (const mixers::GroupSpec& group : spec->groups) {
      sections.push_back(
          {"groups." + std::string(group.name), describe_config(training::group_defaults(group))});
    }
    return show(program,
                std::string(spec->title) + ", " + std::string(spec->family) + ", cost " +
                    std::string(spec->cost) + "\n" + std::string(spec->paper),
                sections);
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
    if (command->get_name() == topic) return show_command(program, *command);
  }
  throw Error({.where = "help",
               .what = "unknown topic '" + topic + "'",
               .expected = "a task, a model or a command",
               .advice = suggestion(topic, known)});
}

}  // namespace

void add_help(CLI::App& app, Program& program) {
  auto topic = std::make_shared<std::string>();
  auto* command =
      add_command(app, program, "help", "settings of a task or a model, flags of a command",
                  [&program, &app, topic] {
                    return topic->empty() ? show_topics(program, app) : help(program, app, *topic);
                  });
  command->add_option("topic", *topic, "a task, a model or a command");
}

}  // namespace lra::cli

// lra list: what there is, one line each.
#include <cstdio>
#include <filesystem>

#include "base/text_format.h"
#include "cli/command.h"
#include "mixers/all.h"
#include "tasks/all.h"
#include "training/run_config.h"

namespace lra::cli {
namespace {

Json list_tasks() {
  Json rows = Json::array();
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    const TaskShape shape = spec->make({})->shape();
    rows.push_back({{"name", spec->name},
                    {"title", spec->title},
                    {"length", shape.length},
                    {"classes", shape.num_classes},
                    {"summary", spec->summary},
                    {"paper", spec->paper}});
  }
  return rows;
}

Json list_models() {
  Json rows = Json::array();
  for (const mixers::LayerSpec* spec : mixers::kAllMixers) {
    rows.push_back({{"name", spec->name},
                    {"title", spec->title},
                    {"family", spec->family},
                    {"cost", spec->cost},
                    {"paper", spec->paper}});
  }
  return rows;
}

Json list_suites() {
  Json rows = Json::array();
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(training::config_folder() + "/suites", ignored)) {
    if (entry.path().extension() == ".toml") rows.push_back({{"file", entry.path().string()}});
  }
  return rows;
}

Json preset_row(const std::string& task, const std::string& model, const std::string& preset) {
  const auto run = training::resolve_run(task, model, preset, 0, {}, {});
  return {{"task", task},
          {"preset", preset},
          {"model", model},
          {"layers", run.model_config.layers},
          {"width", run.model_config.embed_dim},
          {"heads", run.model_config.heads},
          {"batch", run.train.batch_size},
          {"steps", run.train.steps}};
}

// Those of the tasks, with the base model, and the recipes that other models have of their own.
Json list_presets() {
  Json rows = Json::array();
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    const std::string task(spec->name);
    const auto of_task = training::preset_names(task);
    for (const std::string& name : of_task) rows.push_back(preset_row(task, "transformer", name));
    for (const std::string& model : mixers::mixer_names()) {
      if (training::preset_names(task, model).size() == of_task.size()) continue;
      rows.push_back(preset_row(task, model, training::kPublishedPreset));
    }
  }
  return rows;
}

std::string cell_text(const Json& cell) {
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

void print_rows(const Json& rows) {
  if (rows.empty()) return;
  std::vector<std::string> header;
  for (const auto& [key, value] : rows[0].items()) header.push_back(key);
  TextTable table(header);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    for (const auto& [key, value] : row.items()) cells.push_back(cell_text(value));
    table.add_row(cells);
  }
  std::printf("%s", table.text().c_str());
}

ExitCode list(const Program& program, const std::string& what) {
  const std::vector<std::pair<std::string, Json (*)()>> lists = {{"tasks", list_tasks},
                                                                 {"models", list_models},
                                                                 {"suites", list_suites},
                                                                 {"presets", list_presets}};
  Json all = Json::object();
  for (const auto& [name, make] : lists) {
    if (!what.empty() && what != name) continue;
    const Json rows = make();
    if (program.common.json) {
      all[name] = rows;
    } else {
      if (what.empty()) std::printf("%s\n\n", name.c_str());
      print_rows(rows);
      if (what.empty()) std::printf("\n");
    }
  }
  if (program.common.json) print_json(all);
  return ExitCode::kDone;
}

}  // namespace

void add_list(CLI::App& app, Program& program) {
  auto what = std::make_shared<std::string>();
  auto* command = add_command(app, program, "list", "what there is: tasks, models, suites, presets",
                              [&program, what] { return list(program, *what); });
  command->add_option("what", *what, "tasks, models, suites or presets; default: all")
      ->check(CLI::IsMember({"tasks", "models", "suites", "presets"}));
}

}  // namespace lra::cli

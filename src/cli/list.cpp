// lra list: tasks, models, suites, presets and published results, one per line.
#include <algorithm>
#include <cstdio>

#include "base/text_format.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "io/atomic_file.h"
#include "mixers/all.h"
#include "report/tables/literature.h"
#include "tasks/all.h"
#include "tasks/prepare_data.h"
#include "training/settings/data_root.h"
#include "training/settings/presets.h"

namespace lra::cli {
namespace {

// {"train": 25000, "test": 25000}: the sizes of the splits that settings state.
Json sizes_of(const ConfigTable& settings) {
  Json sizes = Json::object();
  for (const char* split : kSplitNames) {
    const ConfigValue* size = settings.find(std::string("num_") + split);
    if (size) sizes[split] = std::get<int64_t>(size->value);
  }
  return sizes;
}

Json task_row(const tasks::TaskSpec& spec, const std::string& name, const ConfigTable& settings,
              const Json& sizes) {
  const TaskShape shape = spec.make(settings)->shape();
  return {{"name", name},           {"title", spec.title},
          {"length", shape.length}, {"classes", shape.num_classes},
          {"examples", sizes},      {"summary", spec.summary},
          {"paper", spec.paper}};
}

// The tasks, then data sets of the user's own in the data root.
Json list_tasks() {
  const std::string root = training::data_root("");
  Json rows = Json::array(), own = Json::array();
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    const std::string task(spec->name);
    if (!spec->settings_of) {
      rows.push_back(task_row(*spec, task, {}, sizes_of(spec->resolve({}))));
      continue;
    }
    Json& row = rows.emplace_back(task_row(*spec, task, {}, Json::object()));
    row["length"] = row["classes"] = Json();  // its data states them
    for (const std::string& name : tasks::own_data_names(*spec, root)) {
      const ConfigTable settings = tasks::task_on_data(name, root).settings;
      Json& data = own.emplace_back(task_row(*spec, name, settings, sizes_of(settings)));
      data["summary"] = "in " + root;
      data["paper"] = "-";
    }
  }
  rows.insert(rows.end(), own.begin(), own.end());
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

std::vector<std::string> suite_files() {
  const std::string folder = training::config_folder() + "/suites";
  std::vector<std::string> files;
  for (const std::string& name : names_in(folder))
    if (name.ends_with(".toml")) files.push_back(folder + "/" + name);
  std::ranges::sort(files);
  return files;
}

Json list_suites() {
  Json rows = Json::array();
  for (const std::string& file : suite_files()) rows.push_back({{"file", file}});
  return rows;
}

Json preset_row(const std::string& task, const std::string& model, const std::string& preset) {
  const auto run = training::resolve_run(task, model, preset, 0, {}, {});
  const bool data_states_length = run.task_spec().settings_of != nullptr;
  return {{"task", task},
          {"preset", preset},
          {"model", model},
          {"length", data_states_length ? Json() : Json(run.make_task()->shape().length)},
          {"layers", run.model_config.layers},
          {"width", run.model_config.embed_dim},
          {"heads", run.model_config.heads},
          {"batch", run.train.batch_size},
          {"steps", run.train.steps}};
}

bool has_sizes_of(Json a, const Json& b) {
  a["model"] = b["model"];
  return a == b;
}

// Presets of the tasks, with the base model, and those of other models that are of other sizes or
// that only they have.
Json list_presets() {
  Json rows = Json::array();
  for (const tasks::TaskSpec* spec : tasks::all_tasks()) {
    const std::string task(spec->name);
    const auto of_task = training::preset_names(task);
    const size_t base = rows.size();
    for (const std::string& name : of_task) rows.push_back(preset_row(task, "transformer", name));
    for (const std::string& model : mixers::mixer_names()) {
      const auto of_model = training::preset_names(task, model);
      for (size_t i = 0; i < of_model.size(); ++i) {
        Json row = preset_row(task, model, of_model[i]);
        if (i >= of_task.size() || !has_sizes_of(row, rows[base + i])) {
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

Json list_results() {
  const auto literature = published_results();
  Json rows = Json::array();
  for (const report::PublishedResult& result : literature.results) {
    Json row = {{"model", result.model}, {"family", result.family}};
    for (int task = 0; task < report::kNumPaperTasks; ++task) {
      const auto place = static_cast<size_t>(task);
      const std::string name(report::paper_task_title(static_cast<report::PaperTask>(task)));
      row[name] = result.fail[place] ? Json("FAIL") : json_or_null(result.accuracy[place]);
    }
    row["average of six"] = json_or_null(result.average(report::kNumPaperTasks));
    row["figures"] = result.kind;
    row["source"] = result.source;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string cell_text(const Json& cell) {
  if (cell.is_null() || (cell.is_object() && cell.empty())) return "-";
  if (cell.is_object()) {  // numbers by name
    std::string text;
    for (const auto& [name, number] : cell.items())
      text += (text.empty() ? "" : ", ") + name + " " + thousands(number.get<int64_t>());
    return text;
  }
  if (cell.is_number_float()) return fixed(cell.get<double>(), 2);
  return cell.is_string() ? cell.get<std::string>() : cell.dump();
}

void print_rows(const Json& rows) {
  if (rows.empty()) return;
  std::vector<std::string> header;
  for (const auto& [key, value] : rows[0].items()) header.push_back(key);
  std::vector<std::vector<std::string>> lines;
  for (const Json& row : rows) {
    std::vector<std::string>& cells = lines.emplace_back();
    for (const auto& [key, value] : row.items()) cells.push_back(cell_text(value));
  }
  std::printf("%s", fitted_table(header, lines, terminal_width()).c_str());
}

// Names side by side, in lines of the terminal's width.
void print_names(const std::vector<std::string>& names) {
  const int width = terminal_width() > 0 ? terminal_width() : 80;
  std::string line;
  for (const std::string& name : names) {
    if (!line.empty() && display_width(line) + display_width(name) + 2 > width) {
      std::printf("%s\n", line.c_str());
      line.clear();
    }
    line += "  " + name;
  }
  std::printf("%s\n", line.c_str());
}

// Names what there is, on one screen; the tables of each kind say more.
void print_overview() {
  std::printf("tasks (more: lra list tasks)\n");
  for (const Json& row : list_tasks()) {
    const std::string length = cell_text(row["length"]), classes = cell_text(row["classes"]);
    std::printf("  %-14s %5s tokens, %2s classes  %s\n", row["name"].get<std::string>().c_str(),
                length.c_str(), classes.c_str(), row["title"].get<std::string>().c_str());
  }
  std::printf("models (more: lra list models)\n");
  print_names(mixers::mixer_names());
  std::printf("suites\n");
  print_names(suite_files());
  std::printf("presets (more: lra list presets)\n");
  print_names(all_preset_names());
  std::printf("published results: lra list results\n");
}

ExitCode list(const Program& program, const std::string& what) {
  const std::vector<std::pair<std::string, Json (*)()>> lists = {{"tasks", list_tasks},
                                                                 {"models", list_models},
                                                                 {"suites", list_suites},
                                                                 {"presets", list_presets},
                                                                 {"results", list_results}};
  if (what.empty() && !program.common.json) {
    print_overview();
    return ExitCode::kDone;
  }
  Json all = Json::object();
  for (const auto& [name, make] : lists) {
    // Published results are many: listed only on request.
    if (what.empty() ? name == "results" : what != name) continue;
    all[name] = make();
    if (!program.common.json) print_rows(all[name]);
  }
  if (program.common.json) print_json(all);
  return ExitCode::kDone;
}

}  // namespace

void add_list(CLI::App& app, Program& program) {
  auto what = std::make_shared<std::string>();
  auto* command =
      add_command(app, program, "list", "list tasks, models, suites, presets or published results",
                  [&program, what] { return list(program, *what); });
  command
      ->add_option("what", *what,
                   "tasks, models, suites, presets or results (published accuracies); default: "
                   "their names, on one screen")
      ->check(CLI::IsMember({"tasks", "models", "suites", "presets", "results"}));
}

}  // namespace lra::cli

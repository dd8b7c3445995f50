#include "cli/suite_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/quoted.h"
#include "base/text_format.h"
#include "checks/check_table.h"
#include "cli/command.h"
#include "io/atomic_file.h"
#include "io/input_file.h"
#include "io/toml.h"
#include "mixers/all.h"

namespace lra::cli {
namespace {

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

template <typename T>
std::vector<T> take_list(ConfigTable& table, const char* key, const std::string& file) {
  const ConfigValue* found = table.find(key);
  if (!found) refuse(file, std::string("'") + key + "' is missing", "a list");
  const auto* list = std::get_if<ConfigList>(&found->value);
  if (!list || list->empty()) {
    refuse(found->where, std::string(key) + " is not a list with entries",
           "for example " + std::string(key) + " = [...]");
  }
  std::vector<T> values;
  for (const ConfigValue& item : *list) {
    const T* value = std::get_if<T>(&item.value);
    if (!value) refuse(item.where, std::string("an entry of ") + key + " has the wrong type");
    if (std::find(values.begin(), values.end(), *value) != values.end()) {
      refuse(item.where, std::string(key) + " has an entry twice", "each once",
             "leave the second one out");
    }
    values.push_back(*value);
  }
  table.erase(key);
  return values;
}

void refuse_negative_seeds(const std::vector<int64_t>& seeds, const std::string& file) {
  for (const int64_t seed : seeds) {
    if (seed >= 0) continue;
    refuse(file, "seeds holds " + std::to_string(seed), "0 or more");
  }
}

void refuse_unknown_keys(const ConfigTable& table, const std::vector<std::string>& known) {
  for (const auto& [key, value] : table) {
    if (holds(known, key)) continue;
    refuse(value.where, "unknown key " + in_quotes(key), "", suggestion(key, known));
  }
}

std::vector<std::string> keys_of(const Suite& suite) {
  std::vector<std::string> keys = {"name", "tasks", "models",    "seeds",  "preset",
                                   "set",  "bench", "leave_out", "accept", "sweep"};
  keys.insert(keys.end(), suite.tasks.begin(), suite.tasks.end());
  keys.insert(keys.end(), suite.models.begin(), suite.models.end());
  return keys;
}

ConfigTable take_table(ConfigTable& table, const std::string& key) {
  const ConfigTable taken = table.table(key);
  table.erase(key);
  return taken;
}

// Takes a list of names; "all" stands for all of `known`.
std::vector<std::string> take_names(ConfigTable& table, const char* key, const std::string& where,
                                    const std::vector<std::string>& known) {
  auto names = take_list<std::string>(table, key, where);
  return names == std::vector<std::string>{"all"} ? known : names;
}

void refuse_unknown_names(const std::vector<std::string>& names,
                          const std::vector<std::string>& known, const std::string& where) {
  for (const std::string& name : names) {
    if (holds(known, name)) continue;
    refuse(where, "leave_out names " + in_quotes(name, 100) + ", which the suite does not", "",
           suggestion(name, known));
  }
}

LeftOut left_out_of(ConfigTable entry, const std::string& where, const Suite& suite) {
  refuse_unknown_keys(entry, {"tasks", "models", "reason"});
  auto tasks = take_names(entry, "tasks", where, suite.tasks);
  auto models = take_names(entry, "models", where, suite.models);
  refuse_unknown_names(tasks, suite.tasks, where);
  refuse_unknown_names(models, suite.models, where);
  auto left_out = read_config<LeftOut>(entry, "leave_out");
  const std::string& reason = left_out.reason;
  if (reason.find_first_not_of(' ') == std::string::npos || printable(reason) != reason) {
    refuse(where, "leave_out has no reason that fits a line",
           "for example reason = \"a day on two cores\"");
  }
  left_out.tasks = std::move(tasks);
  left_out.models = std::move(models);
  return left_out;
}

std::vector<LeftOut> take_left_out(ConfigTable& table, const Suite& suite) {
  const ConfigValue* found = table.find("leave_out");
  if (!found) return {};
  std::vector<LeftOut> all;
  const auto* sections = std::get_if<ConfigList>(&found->value);
  for (const ConfigValue& section : sections ? *sections : ConfigList{*found}) {
    if (!sections || !section.as_table()) {
      refuse(section.where, "leave_out is not a list of sections",
             "[[leave_out]] with tasks, models and reason");
    }
    all.push_back(left_out_of(*section.as_table(), section.where, suite));
  }
  table.erase("leave_out");
  return all;
}

// The name is that of a folder under runs.
void refuse_path(const std::string& name, const std::string& file) {
  if (name.find('/') == std::string::npos && name != "." && name != "..") return;
  refuse(file, "name is " + in_quotes(name, 100), "the name of a folder, without '/'",
         "--out names another place");
}

// A suite of 'lra tune' or lra.arena.sweep, which say so in its first line.
bool lies_with_its_runs(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line == kTuneLine || line == "# Written by lra.arena.sweep.";
}

}  // namespace

Suite read_suite(const std::string& file, const std::string& out) {
  { const InputFile is_a_file(file); }  // refuses anything but a file; opening a pipe would block
  return suite_of(parse_toml_file(file), file, out);
}

Suite suite_of(ConfigTable table, const std::string& file, const std::string& out) {
  Suite suite;
  suite.tasks = take_list<std::string>(table, "tasks", file);
  suite.models = take_names(table, "models", file, mixers::mixer_names());
  suite.seeds = take_list<int64_t>(table, "seeds", file);
  refuse_negative_seeds(suite.seeds, file);
  refuse_unknown_keys(table, keys_of(suite));
  if (table.find("accept")) suite.accept = take_list<std::string>(table, "accept", file);
  checks::refuse_unknown_checks(suite.accept, file + ": accept");
  suite.common = take_table(table, "set");
  for (const std::string& task : suite.tasks) suite.by_task[task] = take_table(table, task);
  for (const std::string& model : suite.models) suite.by_model[model] = take_table(table, model);
  suite.left_out = take_left_out(table, suite);
  if (table.find("sweep")) suite.sweep = read_sweep(take_table(table, "sweep"), file);
  if (table.find("bench")) {
    ConfigTable bench = take_table(table, "bench");
    const auto lengths = take_list<int64_t>(bench, "lengths", file);
    suite.bench = read_config<SuiteBench>(bench, "bench");
    suite.bench->lengths = lengths;
    suite.bench->models = suite.models;
  }
  suite.settings = read_config<SuiteSettings>(table, "");
  if (suite.settings.name.empty())
    suite.settings.name = std::filesystem::path(file).stem().string();
  refuse_path(suite.settings.name, file);
  suite.folder = !out.empty()               ? out
                 : lies_with_its_runs(file) ? folder_of(file)
                                            : "runs/" + suite.settings.name;
  if (suite.bench) suite.bench->out = suite.folder + "/bench";
  return suite;
}

std::string reason_left_out(const Suite& suite, const std::string& task, const std::string& model) {
  for (const LeftOut& entry : suite.left_out) {
    if (holds(entry.tasks, task) && holds(entry.models, model)) return entry.reason;
  }
  return "";
}

}  // namespace lra::cli

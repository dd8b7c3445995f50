#include "cli/suite_file.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "io/input_file.h"
#include "io/toml.h"
#include "mixers/all.h"

namespace lra::cli {
namespace {

template <typename T>
std::vector<T> take_list(ConfigTable& table, const char* key, const std::string& file) {
  const ConfigValue* found = table.find(key);
  if (!found) {
    std::vector<std::string> given;
    for (const auto& [name, unused] : table) given.push_back(name);
    const std::string near = nearest_name(key, given);
    throw Error({.where = file,
                 .what = std::string("'") + key + "' is missing",
                 .expected = "a list",
                 .advice = near.empty() ? "" : "rename " + in_quotes(near)});
  }
  const auto* list = std::get_if<ConfigList>(&found->value);
  if (!list || list->empty()) {
    throw Error({.where = found->where, .what = std::string(key) + " is not a list with entries"});
  }
  std::vector<T> values;
  for (const ConfigValue& item : *list) {
    const T* value = std::get_if<T>(&item.value);
    if (!value)
      throw Error(
          {.where = item.where, .what = std::string("an entry of ") + key + " has the wrong type"});
    if (std::find(values.begin(), values.end(), *value) != values.end()) {
      throw Error({.where = item.where,
                   .what = std::string(key) + " has an entry twice",
                   .expected = "each once",
                   .advice = "leave the second one out"});
    }
    values.push_back(*value);
  }
  table.erase(key);
  return values;
}

void refuse_negative_seeds(const std::vector<int64_t>& seeds, const std::string& file) {
  for (const int64_t seed : seeds) {
    if (seed >= 0) continue;
    throw Error(
        {.where = file, .what = "seeds holds " + std::to_string(seed), .expected = "0 or more"});
  }
}

// Keys that are not those of a suite with these tasks and models.
void refuse_unknown_keys(const ConfigTable& table, const Suite& suite) {
  std::vector<std::string> known = {"name", "tasks", "models", "seeds", "preset", "set", "bench"};
  known.insert(known.end(), suite.tasks.begin(), suite.tasks.end());
  known.insert(known.end(), suite.models.begin(), suite.models.end());
  for (const auto& [key, value] : table) {
    if (std::ranges::find(known, key) != known.end()) continue;
    throw Error({.where = value.where,
                 .what = "unknown key " + in_quotes(key),
                 .advice = suggestion(key, known)});
  }
}

ConfigTable take_table(ConfigTable& table, const std::string& key) {
  const ConfigTable taken = table.table(key);
  table.erase(key);
  return taken;
}

// The name is that of a folder under runs.
void refuse_path(const std::string& name, const std::string& file) {
  if (name.find('/') == std::string::npos && name != "." && name != "..") return;
  throw Error({.where = file,
               .what = "name is " + in_quotes(name, 100),
               .expected = "the name of a folder, without '/'",
               .advice = "--out names another place"});
}

}  // namespace

Suite read_suite(const std::string& file) {
  { const InputFile is_a_file(file); }  // refuses anything but a file; opening a pipe would block
  ConfigTable table = parse_toml_file(file);
  Suite suite;
  suite.tasks = take_list<std::string>(table, "tasks", file);
  suite.models = take_list<std::string>(table, "models", file);
  suite.seeds = take_list<int64_t>(table, "seeds", file);
  refuse_negative_seeds(suite.seeds, file);
  if (suite.models == std::vector<std::string>{"all"}) suite.models = mixers::mixer_names();
  refuse_unknown_keys(table, suite);
  suite.common = take_table(table, "set");
  for (const std::string& task : suite.tasks) suite.by_task[task] = take_table(table, task);
  for (const std::string& model : suite.models) suite.by_model[model] = take_table(table, model);
  if (table.find("bench")) {
    ConfigTable bench = take_table(table, "bench");
    suite.bench_lengths = take_list<int64_t>(bench, "lengths", file);
    suite.bench = read_config<SuiteBench>(bench, "bench");
  }
  suite.settings = read_config<SuiteSettings>(table, "");
  if (suite.settings.name.empty())
    suite.settings.name = std::filesystem::path(file).stem().string();
  refuse_path(suite.settings.name, file);
  return suite;
}

std::string suite_folder(const Suite& suite, const std::string& out) {
  return out.empty() ? "runs/" + suite.settings.name : out;
}

std::string suite_lock(const std::string& folder) { return folder + "/.lock"; }

}  // namespace lra::cli

// lra tune: a sweep of one task, without writing its suite by hand. The suite is a file in the
// folder of the runs, so that `lra suite status` and `lra suite submit` take it as any other.
#include <algorithm>
#include <filesystem>

#include "base/config.h"
#include "cli/compute.h"
#include "cli/suite.h"
#include "io/atomic_file.h"
#include "io/toml.h"
#include "training/settings/data_root.h"

namespace lra::cli {
namespace {

struct TuneArguments {
  SuiteArguments suite;
  std::string task, preset = "small";
  std::vector<std::string> models, sets, accept;
  std::vector<int64_t> seeds = {0};
  SweepSettings sweep;
};

ConfigValue list_of(const auto& items) {
  ConfigList list;
  for (const auto& item : items) list.push_back({item, ""});
  return {list, ""};
}

// "a,b,c", as lists are typed; in brackets it is TOML, and "1e-4:1e-2:log" is a range already.
std::string in_brackets(const std::string& set) {
  const size_t equals = set.find('=');
  const std::string text = equals == std::string::npos ? "" : set.substr(equals + 1);
  if (text.find(',') == std::string::npos || text.find_first_of("[\"'") != std::string::npos)
    return set;
  std::string list;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    ConfigTable one;
    apply_override(one, "v=" + text.substr(begin, end - begin));
    list += (list.empty() ? "[" : ", ") + setting_text(*one.find("v"));
    begin = end + 1;
  }
  return set.substr(0, equals + 1) + list + "]";
}

// Moves what is a list or a range from `settings` to `sweep`.
void take_varied(ConfigTable& settings, ConfigTable& sweep) {
  const ConfigTable given = settings;
  for (const auto& [key, value] : given) {
    if (is_varied(value)) {
      sweep.set(key, value);
      settings.erase(key);
    } else if (value.as_table()) {
      take_varied(settings.table(key), sweep.table(key));
      if (sweep.table(key).empty()) sweep.erase(key);
      if (settings.table(key).empty()) settings.erase(key);
    }
  }
}

// "tune-listops-transformer", the folder under runs/ too.
std::string name_of(const TuneArguments& a) {
  std::string name = "tune-" + file_name_of(a.task);
  for (const std::string& model : a.models) name += "-" + file_name_of(model);
  return name;
}

ConfigTable table_of(const TuneArguments& a) {
  ConfigTable set, varied;
  for (const std::string& text : a.sets) apply_override(set, in_brackets(text));
  take_varied(set, varied);
  if (varied.empty()) {
    refuse("tune", "no setting has several values", "a list or a range to compare",
           "add --set train.learning_rate=1e-3,3e-3, or "
           "--set train.learning_rate=1e-4:1e-2:log --tries 8");
  }
  ConfigTable sweep;
  for (const auto& [name, value] :
       {std::pair("tries", a.sweep.tries), std::pair("seed", a.sweep.seed),
        std::pair("halving", a.sweep.halving)}) {
    if (value > 0) sweep.set(name, {value, ""});
  }
  merge(sweep, varied);
  ConfigTable suite;
  suite.set("name", {name_of(a), ""});
  suite.set("tasks", list_of(std::vector<std::string>{a.task}));
  suite.set("models", list_of(a.models));
  suite.set("seeds", list_of(a.seeds));
  suite.set("preset", {a.preset, ""});
  if (!a.accept.empty()) suite.set("accept", list_of(a.accept));
  if (!set.empty()) suite.set("set", {set, ""});
  suite.set("sweep", {sweep, ""});
  return suite;
}

// Returns what must stay when a sweep goes on with other values, seeds or rules: its runs are still
// those of its suite then.
std::string lasting_part(ConfigTable suite) {
  for (const char* name : {"sweep", "seeds", "accept"}) suite.erase(name);
  return canonical_text(suite);
}

// A sweep may be changed, and one that was refused before its first run replaced; what others wrote
// never is.
void write_suite(const std::string& file, const ConfigTable& suite) {
  constexpr uint64_t kMaxBytes = uint64_t{64} << 10;
  const std::string folder = folder_of(file);
  const std::string text = std::string(kTuneLine) + "\n" + to_toml(suite);
  if (!std::filesystem::exists(file)) {
    make_folder(folder);
    return write_file_atomically(file, text);
  }
  const std::string found = read_file(file, kMaxBytes);
  const bool is_ours = found.starts_with(kTuneLine);
  const bool has_runs = std::filesystem::exists(folder + "/" + kTriesFolder);
  if (is_ours && (!has_runs || lasting_part(parse_toml(found, file)) == lasting_part(suite)))
    return write_file_atomically(file, text);
  refuse(file,
         is_ours ? "is a sweep with other models or settings for all runs"
                 : "was not written by 'lra tune'",
         is_ours ? "the command that began it, with the same or other values to compare"
                 : "no such file",
         "choose another --out");
}

ExitCode tune(const Program& program, TuneArguments a) {
  if (a.suite.out.empty()) a.suite.out = "runs/" + name_of(a);
  a.suite.file = a.suite.out + "/suite.toml";
  const ConfigTable suite = table_of(a);
  // Refuses before anything is written.
  const Suite checked = suite_of(suite, a.suite.file, a.suite.out);
  if (!std::filesystem::exists(a.suite.file))
    (void)cells_of(checked, training::data_root(a.suite.data));
  need_tensors();
  write_suite(a.suite.file, suite);
  say(program, "suite: " + a.suite.file);
  return run_suite(program, a.suite);
}

}  // namespace

void add_tune(CLI::App& app, Program& program) {
  auto a = std::make_shared<TuneArguments>();
  auto* command = add_command(app, program, "tune",
                              "compare settings by validation accuracy, test the best ones",
                              [&program, a] { return tune(program, *a); });
  command->add_option("task", a->task, "a task (lra list tasks)")->required();
  command->add_option("model", a->models, "models (lra list models), which try the same settings")
      ->required();
  command->add_option("--preset", a->preset, "paper, release, small, or published (default small)");
  add_set_option(*command, a->sets,
                 "KEY=VALUE: a setting of every run, or what to compare: KEY=1e-3,3e-3 or "
                 "KEY=1e-4:1e-2:log (drawn log-uniformly; 0:0.3 uniformly, 16:256 whole numbers)");
  command
      ->add_option("--tries", a->sweep.tries,
                   "settings that each model tries; default: every combination of the lists")
      ->check(CLI::Range(1, 10000));
  command->add_option("--seeds", a->seeds, "N[,N]: seeds of every setting (default 0)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(seed_range());
  command
      ->add_option("--halving", a->sweep.halving,
                   "stop hopeless settings early: at each of a few validations, the better one "
                   "in this many goes on (default: train all to the end)")
      ->check(CLI::Range(2, 1000));
  command->add_option("--draw-seed", a->sweep.seed, "seed of what ranges draw (default 0)")
      ->check(seed_range());
  add_accept_option(*command, a->accept);
  add_suite_options(*command, a->suite, program.common);
}

}  // namespace lra::cli

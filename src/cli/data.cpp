// lra data: make, prepare, import, fetch, check, show, export.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/command_text.h"
#include "base/counted.h"
#include "base/quoted.h"
#include "base/stop_flag.h"
#include "base/text_format.h"
#include "cli/command.h"
#include "data/contact_sheet.h"
#include "data/fetch.h"
#include "data/files.h"
#include "data/new_folder.h"
#include "io/atomic_file.h"
#include "io/findings_json.h"
#include "io/overwrite.h"
#include "io/progress.h"
#include "tasks/all.h"
#include "tasks/data_checks.h"
#include "tasks/prepare_data.h"
#include "training/settings/data_root.h"

namespace lra::cli {
namespace {

struct DataArguments {
  std::string task, root, folder, out, png, split = "train";
  std::vector<std::string> sources, sets, urls, accept;
  std::string sha256;
  double timeout_s = 30;
  uint64_t seed = 0;
  int64_t index = 0, count = 64;
  std::optional<int64_t> num_train, num_val, num_test;
};

// The task with the settings of the arguments. `data` names the data, for one that takes its shape
// from its data (tasks::task_on_data); empty if there is none yet.
std::unique_ptr<tasks::Task> make_task(const DataArguments& a, const std::string& data = "") {
  const tasks::TaskSpec& spec = tasks::find_task(a.task);
  ConfigTable stated;
  if (!data.empty()) stated = tasks::task_on_data(a.task, data).settings;
  ConfigTable settings = stated;
  merge(settings, settings_of("task", a.sets, a.task));
  settings = spec.resolve(settings);
  if (!data.empty()) tasks::refuse_import_settings(spec, stated, settings);
  return spec.make(settings);
}

// One line each, and how a warning is accepted.
std::string findings_text(const std::vector<CheckFinding>& findings) {
  std::string text;
  for (const CheckFinding& finding : findings) {
    text += "  " + printable(checks::text_of(finding)) + "\n";
  }
  if (std::ranges::any_of(findings, marks_results)) {
    text +=
        "  results on data with warnings are marked; docs/checks.md explains them, and --accept "
        "NAME accepts one\n";
  }
  return text;
}

ExitCode report_dataset(const Program& program, const DataArguments& a, const tasks::Task& task,
                        const Dataset& dataset) {
  const std::vector<CheckFinding> findings = tasks::checks_of(task, dataset);
  Json splits = Json::object();
  for (const auto& [name, shards] : dataset.manifest().splits)
    splits[name] = dataset.split(name).size();
  const std::vector<std::string>& notes = dataset.manifest().notes;
  const std::vector<checks::Fact> facts = task.reading(dataset);
  Json reading = Json::array();
  for (const checks::Fact& fact : facts) reading.push_back({fact.name, fact.value});
  if (program.common.json) {
    print_json({{"task", a.task},
                {"folder", dataset.folder()},
                {"hash", dataset.hash()},
                {"splits", splits},
                {"notes", notes.size()},
                {"reading", reading},
                {"data_checks", to_json_value(findings)}});
    return ExitCode::kDone;
  }
  std::printf("prepared %s in %s\n", a.task.c_str(), dataset.folder().c_str());
  for (const auto& [name, size] : splits.items()) {
    std::printf("  %-6s %s\n", name.c_str(), counted(size.get<int64_t>(), "example").c_str());
  }
  for (const checks::Fact& fact : facts) {
    std::printf("  %-6s %s\n", printable(fact.name).c_str(), printable(fact.value).c_str());
  }
  std::printf("  hash   %s\n", dataset.hash().c_str());
  if (!notes.empty()) {
    std::printf("  notes  %zu, the first: %s\n", notes.size(), printable(notes.front()).c_str());
  }
  std::printf("%s", findings_text(findings).c_str());
  return ExitCode::kDone;
}

ExitCode report_written(const Program& program, const DataArguments& a, const tasks::Task& task) {
  // Its hashes were just computed while writing; reading everything again would only cost memory.
  return report_dataset(program, a, task,
                        tasks::open_dataset(tasks::find_task(a.task), task, a.out, false));
}

Progress bar_of(const std::string& description, int64_t total, const std::string& unit,
                const Program& program) {
  return Progress({.description = description,
                   .total = total,
                   .unit = unit,
                   .unit_scale = true,
                   .quiet = program.common.quiet});
}

Dataset opened(const DataArguments& a, const tasks::Task& task) {
  return tasks::open_dataset(tasks::find_task(a.task), task, a.folder);
}

ExitCode prepare(const Program& program, const DataArguments& a) {
  const std::string root = training::data_root(a.root);
  const auto task = make_task(a, root);
  return report_dataset(
      program, a, *task,
      tasks::prepare_data(tasks::find_task(a.task), *task, root, program.common.quiet));
}

ExitCode make(const Program& program, const DataArguments& a) {
  const auto task = make_task(a);
  if (!task->can_generate()) {
    refuse(a.task, "this task's examples come from files and cannot be generated", "",
           "see what can be imported with: " + command_text({"help", a.task}));
  }
  refuse_existing(a.out);
  make_folder(folder_of(a.out));
  const tasks::MakeOptions options{.out = a.out,
                                   .seed = a.seed,
                                   .num_train = a.num_train,
                                   .num_val = a.num_val,
                                   .num_test = a.num_test};
  Progress bar = bar_of("make " + a.task, task->num_to_make(options), "ex", program);
  task->make(options, bar);
  bar.finish();
  return report_written(program, a, *task);
}

ExitCode import(const Program& program, const DataArguments& a) {
  const auto task = make_task(a);
  for (const std::string& source : a.sources) {
    if (is_there(source)) continue;
    refuse(source, "there is no such file or folder", "",
           "see what can be imported with: " + command_text({"help", a.task}));
  }
  refuse_existing(a.out);
  make_folder(folder_of(a.out));
  Progress bar = bar_of("import " + a.task, 0, "ex", program);
  tasks::import_data(*task, a.sources, a.out, bar, a.accept);
  bar.finish();
  return report_written(program, a, *make_task(a, a.out));
}

// The raw file goes next to the prepared folder, where `lra train` would look for it.
ExitCode fetch(const Program& program, const DataArguments& a) {
  const auto& spec = tasks::find_task(a.task);
  if (spec.remote == nullptr) {
    refuse(a.task, "no published copy is available for download", "",
           make_task(a)->can_generate()
               ? "generate it with: " + command_text({"data", "make", a.task, "--out", a.out})
               : "see what can be imported with: " + command_text({"help", a.task}));
  }
  refuse_existing(a.out);
  Progress bar =
      bar_of("fetch " + std::string(spec.remote->file), spec.remote->bytes, "B", program);
  DataArguments fetched = a;
  fetched.sources = {fetch(
      *spec.remote,
      {.folder = folder_of(a.out), .urls = a.urls, .sha256 = a.sha256, .timeout_s = a.timeout_s},
      bar)};
  bar.finish();
  return import(program, fetched);
}

// "25,000" as 25000 and "64.38%" as 0.6438; other values as they are.
Json fact_value(const std::string& text) {
  if (text.ends_with('%') && text.find_first_not_of("0123456789.") == text.size() - 1) {
    return std::stod(text) / 100;
  }
  std::string digits = text;
  std::erase(digits, ',');
  const bool is_whole = !digits.empty() && digits.size() < 16 &&
                        digits.find_first_not_of("0123456789") == digits.npos &&
                        thousands(std::stoll(digits)) == text;
  return is_whole ? Json(std::stoll(digits)) : Json(text);
}

ExitCode check(const Program& program, const DataArguments& a) {
  end_at_first_signal();
  const auto task = make_task(a, a.folder);
  const Dataset dataset = opened(a, *task);
  auto facts = task->check(dataset);
  for (const checks::Baseline& baseline : tasks::baselines_of(*task, dataset)) {
    facts.push_back({.name = "baseline: " + baseline.name,
                     .value = percent(baseline.accuracy),
                     .ok = true,
                     .detail = ""});
  }
  Json rows = Json::array();
  TextTable table({"fact", "value", ""});
  std::string wrong;
  for (const checks::Fact& fact : facts) {
    if (!fact.ok) wrong += "WRONG: " + fact.name + " " + fact.value + ": " + fact.detail + "\n";
    rows.push_back({{"fact", fact.name},
                    {"value", fact_value(fact.value)},
                    {"ok", fact.ok},
                    {"detail", fact.detail}});
    table.add_row({fact.name, fact.value, fact.ok ? fact.detail : "WRONG: " + fact.detail});
  }
  const bool all_ok = wrong.empty();
  const std::vector<CheckFinding> findings = tasks::checks_of(*task, dataset);
  wrong += findings_text(findings);
  print_result(program,
               {{"task", a.task},
                {"folder", a.folder},
                {"ok", all_ok},
                {"facts", rows},
                {"data_checks", to_json_value(findings)}},
               table.text() + "\n" + (wrong.empty() ? "all in order\n" : wrong));
  return all_ok ? ExitCode::kDone : ExitCode::kUserError;
}

// The tokens of each sequence of an example as a model reads them, or the stored values.
Json tokens_json(const TaskShape& shape, const Split& split, int64_t example) {
  const auto channels = static_cast<size_t>(split.words_per_token());
  const bool is_float = shape.values && shape.values->stored_as_float;
  Json sequences = Json::array();
  for (int64_t tower = 0; tower < shape.num_towers; ++tower) {
    const auto length = static_cast<size_t>(split.sequence_length(example, tower));
    std::vector<int32_t> words(length * channels);
    split.read_tokens(example, tower, words);
    if (!is_float) {
      sequences.push_back(words);
      continue;
    }
    Json values = Json::array();
    for (size_t at = 0; at < words.size(); at += channels) {
      Json& position = values.emplace_back(Json::array());
      for (size_t c = 0; c < channels; ++c) position.push_back(std::bit_cast<float>(words[at + c]));
    }
    sequences.push_back(std::move(values));
  }
  return sequences;
}

ExitCode show(const Program& program, const DataArguments& a) {
  end_at_first_signal();
  const auto task = make_task(a, a.folder);
  const Dataset dataset = opened(a, *task);
  // Data is shown however it was made, unless settings choose, or say what an answer is.
  const bool as_stored =
      a.sets.empty() && dataset.has(a.split) && !tasks::find_task(a.task).labels_places;
  if (!as_stored) task->refuse_other_settings(dataset);
  const Split split = as_stored ? dataset.split(a.split) : task->split(dataset, a.split);
  if (a.index < 0 || a.index >= split.size()) {
    refuse("--index", "there is no example " + std::to_string(a.index),
           split.size() == 0 ? "none: the split is empty"
                             : "0 to " + std::to_string(split.size() - 1));
  }
  if (!a.png.empty()) {
    refuse_to_overwrite(a.png, png_output(), "--png");
    const auto sheet = contact_sheet(task->shape(), split, a.index, a.count);
    make_folder(folder_of(a.png));
    write_file_atomically(a.png, encode_png(sheet));
  }
  const std::string text = task->render(split, a.index);
  const int64_t length = split.sequence_length(a.index, 0);
  const std::vector<std::string> names = task->label_names(dataset);
  const auto label = static_cast<size_t>(split.label(a.index));
  if (program.common.json) {
    Json json = {{"task", a.task},   {"split", a.split},
                 {"index", a.index}, {"label", label},
                 {"length", length}, {"tokens", tokens_json(task->shape(), split, a.index)},
                 {"text", text}};
    if (!names.empty()) json["label_name"] = names.at(label);
    print_json(json);
  } else {
    const std::string name = names.empty() ? "" : " (" + printable(names.at(label)) + ")";
    std::printf("%s, example %s of %s, label %zu%s, %s\n\n%s\n", a.split.c_str(),
                thousands(a.index).c_str(), thousands(split.size()).c_str(), label, name.c_str(),
                counted(length, "token").c_str(), text.c_str());
  }
  return ExitCode::kDone;
}

ExitCode export_official(const Program& program, const DataArguments& a) {
  const auto task = make_task(a, a.folder);
  task->export_official(opened(a, *task), a.out);
  return print_result(program, {{"task", a.task}, {"folder", a.out}},
                      "wrote " + a.task + " in its official layout to " + a.out + "\n");
}

CLI::Validator sha256_digits() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool good =
            text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
        return good ? std::string() : in_quotes(text, 100) + "; expected 64 digits of 0-9, a-f";
      },
      "HEX");
}

// Examples of a split that is made.
CLI::Range size_range() { return CLI::Range(int64_t{1}, int64_t{100000000}); }

CLI::App* add_verb(CLI::App& data, Program& program, const std::shared_ptr<DataArguments>& a,
                   const char* name, const char* help,
                   ExitCode (*verb)(const Program&, const DataArguments&)) {
  auto* command =
      add_command(data, program, name, help, [&program, a, verb] { return verb(program, *a); });
  command->add_option("task", a->task, "a task (lra list tasks); custom for data of your own")
      ->required();
  add_set_option(*command, a->sets, "task.KEY=VALUE: override a setting of the task");
  return command;
}

}  // namespace

void add_data(CLI::App& app, Program& program) {
  CLI::App* data =
      add_group(app, "data", "make, prepare, import, fetch, check, show and export data");
  auto a = std::make_shared<DataArguments>();

  auto* make_command = add_verb(*data, program, a, "make", "generate a dataset", make);
  make_command->add_option("--out", a->out, "folder to write; must not exist")->required();
  make_command->add_option("--seed", a->seed, "seed (default 0)")->check(seed_range());
  make_command->add_option("--train", a->num_train, "training examples; default: the task's")
      ->check(size_range());
  make_command->add_option("--val", a->num_val, "validation examples")->check(size_range());
  make_command->add_option("--test", a->num_test, "test examples")->check(size_range());

  auto* prepare_command =
      add_verb(*data, program, a, "prepare",
               "prepare the data as training does: open, import or generate it", prepare);
  add_data_option(*prepare_command, a->root);

  auto* import_command =
      add_verb(*data, program, a, "import",
               "read official files, or your own (task custom), into a prepared folder", import);
  import_command
      ->add_option("from", a->sources,
                   "files or folders in an official layout; custom: tables, arrays, "
                   "series, and folders for each class (lra help custom)")
      ->required();
  import_command->add_option("--out", a->out, "folder to write; must not exist")->required();
  add_accept_option(*import_command, a->accept);

  auto* fetch_command = add_verb(*data, program, a, "fetch",
                                 "download the official files (resuming an earlier download), "
                                 "compare digests and import",
                                 fetch);
  fetch_command
      ->add_option("--out", a->out,
                   "folder to write; must not exist. The downloaded file is kept next to it")
      ->required();
  fetch_command
      ->add_option("--url", a->urls, "a mirror to use instead of the published address; repeatable")
      ->take_all();
  fetch_command
      ->add_option("--sha256", a->sha256,
                   "digest that the file must have, instead of the published one")
      ->check(sha256_digits());
  fetch_command
      ->add_option("--timeout", a->timeout_s,
                   "seconds below 1 KiB/s after which to try the next mirror (default 30)")
      ->check(CLI::Range(1.0, 3600.0));

  auto* check_command =
      add_verb(*data, program, a, "check",
               "check sizes, labels, lengths and duplicates, and print trivial baselines", check);
  check_command->add_option("folder", a->folder, "a prepared folder")->required();

  auto* show_command = add_verb(*data, program, a, "show", "print an example", show);
  show_command->add_option("folder", a->folder, "a prepared folder")->required();
  show_command->add_option("--split", a->split, "train, val or test (default train)")
      ->check(one_split());
  show_command->add_option("--index", a->index, "which example (default 0)");
  show_command->add_option("--png", a->png, "also write a sheet of images, starting with that one");
  show_command->add_option("--count", a->count, "images on the sheet (default 64)")
      ->check(CLI::Range(int64_t{1}, int64_t{100000}));

  auto* export_command = add_verb(*data, program, a, "export",
                                  "write the data in its official layout", export_official);
  export_command->add_option("folder", a->folder, "a prepared folder")->required();
  export_command->add_option("--out", a->out, "folder to write")->required();
}

}  // namespace lra::cli

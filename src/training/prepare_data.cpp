#include "training/prepare_data.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/atomic_file.h"
#include "base/lock_file.h"
#include "base/progress.h"
#include "base/text_format.h"
#include "tasks/all.h"
#include "tasks/new_folder.h"
#include "tasks/stopping.h"

namespace lra::training {
namespace {

namespace fs = std::filesystem;

bool is_prepared(const std::string& folder) { return fs::exists(folder + "/manifest.json"); }

// The root itself, root/TASK, or root/TASK.prepared where raw files lie under the task's name.
std::string prepared_folder(const tasks::TaskSpec& spec, const std::string& root) {
  if (is_prepared(root)) return root;
  const std::string own = root + "/" + std::string(spec.name), beside = own + ".prepared";
  if (is_prepared(own)) return own;
  return is_prepared(beside) || fs::exists(own) ? beside : own;
}

// Says once that another process is at it, and stops when asked to.
std::function<void()> patience(const std::string& folder, bool quiet) {
  return [folder, quiet, told = false]() mutable {
    tasks::throw_if_stopped();
    if (!quiet && !told) {
      std::fprintf(stderr, "waiting for another process that prepares %s\n",
                   printable(folder).c_str());
    }
    told = true;
  };
}

tasks::MakeOptions usual_options(const std::string& out) {
  return {.out = out, .seed = 0, .num_train = {}, .num_val = {}, .num_test = {}};
}

// Prepared once: to make it again beside itself would hide what happened to it.
void refuse_without_manifest(const std::string& folder) {
  if (!fs::is_directory(folder)) return;
  for (const std::string& name : names_in(folder)) {
    // Another process may have put the whole folder there just now.
    if (!name.ends_with(".shard") || is_prepared(folder)) continue;
    throw Error({.where = folder,
                 .what = "holds " + printable(name) + " and no manifest.json",
                 .expected = "a folder that 'lra data make' or 'lra data import' wrote",
                 .advice = "remove it, or bring the manifest back"});
  }
}

// `sources` empty: the examples are generated.
void prepare(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& folder,
             const std::vector<std::string>& sources, bool quiet) {
  const std::string name(spec.name);
  Progress progress({.description = sources.empty() ? "make " + name : "import " + name,
                     .total = 0,
                     .unit = "ex",
                     .unit_scale = true,
                     .quiet = quiet});
  if (sources.empty()) {
    task.make(usual_options(folder), progress);
  } else {
    task.import(sources, folder, progress);
  }
  progress.finish();
}

// Processes that start at once on one data root: the first prepares, the others wait and use what
// it made. When it fails, the next one tries.
void prepare_in_turn(const tasks::TaskSpec& spec, const tasks::Task& task,
                     const std::string& folder, const std::vector<std::string>& sources,
                     bool quiet) {
  const WaitingLock turn(folder + ".turn", patience(folder, quiet));
  if (is_prepared(folder)) return;
  // `lra data make` and `lra data import` do not take turns, but lock what they write.
  { const WaitingLock writer(tasks::lock_of(folder), patience(folder, quiet)); }
  if (!is_prepared(folder)) prepare(spec, task, folder, sources, quiet);
}

}  // namespace

std::string data_root(const std::string& given) {
  if (!given.empty()) return given;
  const char* named = std::getenv("LRA_DATA");
  return named && *named ? named : "data";
}

bool data_found(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root) {
  return is_prepared(prepared_folder(spec, root)) || !task.find_sources(root).empty();
}

bool data_available(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root) {
  return task.can_generate() || data_found(spec, task, root);
}

void refuse_lost_data(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root,
                      const RunRecord& record) {
  if (data_found(spec, task, root)) return;
  const auto same_size = [&] {
    if (!record.data_examples) return true;
    const SplitSizes& of = *record.data_examples;
    return of.train + of.val + of.test == task.num_to_make(usual_options(""));
  };
  if (record.data_source == "generated" && same_size()) return;
  throw Error({.where = root,
               .what = "there is no data for " + std::string(spec.name),
               .expected = "the data of the run, hash " + record.data_hash,
               .advice = "name its folder with --data or LRA_DATA"});
}

tasks::Dataset prepare_data(const tasks::TaskSpec& spec, const tasks::Task& task,
                            const std::string& root, bool quiet) {
  const std::string folder = prepared_folder(spec, root), name(spec.name);
  if (!is_prepared(folder)) {
    refuse_without_manifest(root);
    refuse_without_manifest(root + "/" + name);
    const auto sources = task.find_sources(root);
    if (sources.empty() && !task.can_generate()) {
      throw Error({.where = root,
                   .what = "there is no data for " + name,
                   .expected = folder + " as 'lra data import " + name + "' writes it",
                   .advice = "import a copy with 'lra data import " + name + " FROM --out " +
                             folder + "', try 'lra data fetch " + name +
                             "', or name the data folder with --data or LRA_DATA"});
    }
    if (sources.empty() && !quiet) {
      std::fprintf(stderr, "there is no data for %s in %s: it is generated in %s\n", name.c_str(),
                   printable(root).c_str(), printable(folder).c_str());
    }
    make_folder(root);
    prepare_in_turn(spec, task, folder, sources, quiet);
  }
  return tasks::open_dataset(spec, task, folder);
}

}  // namespace lra::training

#include "training/settings/data_root.h"

#include <filesystem>

#include "base/error.h"
#include "checks/equal_examples.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "tasks/all.h"
#include "training/settings/presets.h"

namespace lra::training {

std::string data_root(const std::string& given) {
  return given.empty() ? tasks::default_data_root() : given;
}

RunConfig resolve_on_data(const std::string& task, const std::string& model,
                          const std::string& preset, uint64_t seed, const std::string& root,
                          const ConfigTable& overrides, const std::vector<std::string>& sets) {
  return resolve_on_data(tasks::task_on_data(task, root), model, preset, seed, root, overrides,
                         sets);
}

RunConfig resolve_on_data(const tasks::TaskOnData& on, const std::string& model,
                          const std::string& preset, uint64_t seed, const std::string& root,
                          const ConfigTable& overrides, const std::vector<std::string>& sets) {
  ConfigTable settings;
  if (!on.settings.empty()) settings.set("task", {on.settings, root});
  merge(settings, overrides);
  RunConfig run = resolve_run(on.name, model, preset, seed, settings, sets);
  tasks::refuse_import_settings(run.task_spec(), on.settings, run.task_settings);
  return run;
}

std::optional<int64_t> count_trained_on(const RunFolder& run, const RunRecord& record,
                                        const ScaledSplit& split) {
  const tasks::TaskSpec& spec = tasks::find_task(record.task);
  const ConfigValue* settings = record.config.find("task");
  if (!settings || !settings->as_table()) return {};
  const auto task = spec.make(*settings->as_table());
  const auto own = tasks::data_at_hand(spec, *task, data_root_of(run, ""));
  if (!own || own->hash() != record.data_hash) return {};
  if (scaling_of(*own) != split.scaling) return {};
  return checks::count_equal(split.split, task->split(*own, "train"), task->shape().num_towers);
}

std::string data_root_of(const RunFolder& run, const std::string& given) {
  if (!given.empty() || !is_file(run.data_root())) return data_root(given);
  constexpr uint64_t kMaxBytes = 1 << 16;
  const std::string remembered = read_file(run.data_root(), kMaxBytes);
  return is_folder(remembered) ? remembered : data_root(given);
}

void remember_data_root(const RunFolder& run, const std::string& root) {
  write_file_atomically(run.data_root(),
                        std::filesystem::absolute(root).lexically_normal().string());
}

void refuse_lost_data(const tasks::TaskSpec& spec, const tasks::Task& task, const std::string& root,
                      const RunRecord& record) {
  if (tasks::data_found(spec, task, root)) return;
  const auto same_size = [&] {
    if (!record.data_examples) return true;
    const SplitSizes& of = *record.data_examples;
    return of.train + of.val + of.test == task.num_to_make({});
  };
  if (record.data_source == "generated" && same_size()) return;
  throw Error({.where = root,
               .what = "no data for " + std::string(spec.name),
               .expected = "the data of the run, hash " + record.data_hash,
               .advice = "name its folder with --data or LRA_DATA"});
}

void refuse_other_data(const Dataset& dataset, const RunFolder& run, const RunRecord& record,
                       const std::string& advice) {
  if (record.data_hash == dataset.hash()) return;
  throw Error({.where = dataset.folder(),
               .what = "is not the data of " + run.path + ", hash " + dataset.hash(),
               .expected = record.data_hash,
               .advice = advice});
}

}  // namespace lra::training

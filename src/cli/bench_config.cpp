#include "cli/bench_config.h"

#include <algorithm>

#include "tasks/all.h"
#include "training/settings/data_root.h"

namespace lra::cli {

bool has_length_setting(const std::string& task) {
  const auto fields = tasks::find_task(task).describe();
  return std::ranges::count(fields, "length", &FieldInfo::name) > 0;
}

training::RunConfig measured_config(const std::string& task, const std::string& model,
                                    const std::string& preset, int64_t length,
                                    std::vector<std::string> sets, const std::string& data) {
  if (has_length_setting(task) && length > 0)
    sets.push_back("task.length=" + std::to_string(length));
  auto config =
      training::resolve_on_data(task, model, preset, 0, training::data_root(data), {}, sets);
  training::refuse_masked(config, "lra bench");
  return config;
}

training::RunConfig config_of(const BenchArguments& a, const std::string& model, int64_t length) {
  std::vector<std::string> sets = {"train.precision=" + a.dtype};  // what --set may change
  sets.insert(sets.end(), a.sets.begin(), a.sets.end());
  return measured_config(a.task, model, a.preset, length, sets, a.data.value_or(""));
}

}  // namespace lra::cli

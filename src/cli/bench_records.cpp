#include "cli/bench_records.h"

#include <algorithm>

#include "cli/compute.h"
#include "data/files.h"
#include "tasks/all.h"
#include "training/settings/data_root.h"
#include "training/settings/new_record.h"
#include "training/settings/shipped_configs.h"

namespace lra::cli {

bool has_length_setting(const std::string& task) {
  const auto fields = tasks::find_task(task).describe();
  return std::any_of(fields.begin(), fields.end(),
                     [](const FieldInfo& f) { return f.name == "length"; });
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

RunRecord bench_record(const BenchArguments& a, const std::string& model, const Program& program) {
  const auto config = config_of(a, model, a.lengths.at(0));
  RunRecord record = training::record_of(config, program_provenance(program.common), "", {}, {},
                                         training::edited_presets(config.task, config.model));
  record.kind = "bench";
  record.status = RunStatus::kDone;
  if (!a.findings.empty()) record.data_checks = a.findings;
  return record;
}

std::string record_folder(const BenchArguments& a, const std::string& model) {
  return a.out + "/" + file_name_of(a.task) + "-" + model + "-" + a.mode +
         (a.real_batch ? "-data" : "") + (a.dtype == "fp32" ? "" : "-" + a.dtype);
}

std::string record_file(const BenchArguments& a, const std::string& model) {
  return record_folder(a, model) + "/record.json";
}

void refuse_to_lose_measurements(const BenchArguments& a, const std::string& model) {
  const std::string file = record_file(a, model);
  if (!is_there(file)) return;
  std::string lengths;
  for (const Measurement& m : read_record(file).measurements)
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(m.length);
  if (lengths.empty()) return;
  throw Error({.where = file,
               .what = "holds measurements at length " + lengths + ", which would be overwritten",
               .expected = "no record there",
               .advice = "choose another --out, or pass --replace"});
}

}  // namespace lra::cli

#include "records/run_record.h"

#include <array>
#include <cmath>

#include "base/counted.h"
#include "io/atomic_file.h"
#include "records/record_json.h"

namespace lra {
namespace {

// A curve of 100,000 evaluations takes 15 MB.
constexpr JsonLimits kLimits = {.max_bytes = 64 << 20, .max_depth = 32, .max_keys = 1000};

constexpr std::array<const char*, 5> kStatusNames = {"running", "done", "stopped", "diverged",
                                                     "failed"};

}  // namespace

const auto& names_of(RunStatus) { return kStatusNames; }

std::string examples_of(const Evaluation& evaluation) {
  const std::string examples = counted(evaluation.num_examples, "example");
  if (!evaluation.num_positions) return examples;
  return counted(*evaluation.num_positions, "predicted place") + " of " + examples;
}

LRA_FIELDS(Measurement, mode, dtype, length, batch, steps_per_s, tokens_per_s, examples_per_s,
           computed_tokens_per_s, slowest_steps_per_s, fastest_steps_per_s, windows, parts,
           peak_resident_bytes, peak_tensor_bytes, model_flops, gemm_flops_per_s,
           pipeline_steps_per_s, warning)
LRA_FIELDS(SplitSizes, train, val, test)
LRA_FIELDS(EarlierPart, steps, config_hash, fingerprint, change)
LRA_FIELDS(Pretraining, steps, fingerprint, config)
LRA_FIELDS(InitialWeights, origin, hash, fresh, unused, pretraining)
LRA_FIELDS(Tuning, tried, steps, chosen_by, varied)
LRA_FIELDS(PythonCode, source_sha256, packages)

// The schema goes first and is read apart: nothing else is known of a record before it.
void fields(auto& f, RunRecord& value) {
  LRA_MEMBERS(kind, status, failure);
  fields(f, static_cast<RunIdentity&>(value));
  LRA_MEMBERS(validation, checkpoint, data_source, weights_hash, num_parameters, base_parameters,
              division, division_reason, published_setting, steps, planned_steps, preset_steps,
              test_split_examples, data_examples, examples, tokens, computed_tokens, train_seconds,
              total_seconds, train_tokens_per_s, train_examples_per_s, peak_resident_bytes,
              peak_device_bytes, estimated_resident_bytes, ended_by, skipped_steps, roll_backs,
              undone_steps, warnings, data_checks, earlier_parts, initial_weights, tuning, train,
              val, test, best_val, val_curve, measurements, baselines, python, config, provenance);
}

std::string to_string(RunStatus status) { return kStatusNames.at(static_cast<size_t>(status)); }

double flops_utilisation(const Measurement& m) {
  return static_cast<double>(m.model_flops) * m.steps_per_s / m.gemm_flops_per_s;
}

std::string to_json(const Measurement& measurement) {
  return json_text(to_json_value(measurement), 2) + "\n";
}

Measurement parse_measurement(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  Measurement measurement;
  struct_from_json(JsonFields(json, name), measurement);
  return measurement;
}

double two_class_chance_limit(int64_t num_examples) {
  LRA_CHECK_GT(num_examples, 0);
  return 50 + 100 * 3 * std::sqrt(0.25 / static_cast<double>(num_examples));
}

std::string edited_presets_of(const RunRecord& record) {
  const std::string_view begin = kEditedPresets;
  for (const std::string& warning : items_of(record.warnings)) {
    if (warning.starts_with(begin)) return warning.substr(begin.size());
  }
  return "";
}

std::vector<RunIdentity> identities_of(const RunRecord& record) {
  std::vector<RunIdentity> all = {record};
  for (const EarlierPart& part : items_of(record.earlier_parts)) {
    RunIdentity& earlier = all.emplace_back(record);
    earlier.config_hash = part.config_hash;
    earlier.fingerprint = part.fingerprint;
  }
  return all;
}

int64_t peak_memory_bytes(const RunRecord& record) {
  return record.peak_device_bytes.value_or(record.peak_resident_bytes);
}

std::string to_json(const RunRecord& record) { return json_text(file_to_json(record), 2) + "\n"; }

namespace {

// Refuses percentages and other kinds of records, as another program may write them.
void refuse_impossible(const RunRecord& record, const std::string& name) {
  std::vector<double> shares;
  for (const auto* e : {&record.train, &record.val, &record.test, &record.best_val}) {
    if (*e) shares.push_back((*e)->accuracy);
  }
  for (const Evaluation& e : record.val_curve) shares.push_back(e.accuracy);
  for (const auto& [baseline, accuracy] : record.baselines) shares.push_back(accuracy);
  for (const double share : shares) {
    if (share >= 0 && share <= 1) continue;
    throw Error(
        {.where = name, .what = "an accuracy is " + std::to_string(share), .expected = "0 to 1"});
  }
  if (record.kind == "train" || record.kind == "bench") return;
  throw Error({.where = name, .what = "kind '" + record.kind + "'", .expected = "train or bench"});
}

}  // namespace

RunRecord parse_record(const std::string& text, const std::string& name) {
  auto record = parse_record_file<RunRecord>(text, name, kLimits, "a run record");
  refuse_impossible(record, name);
  return record;
}

void write_record(const RunRecord& record, const std::string& path) {
  write_file_atomically(path, to_json(record));
}

RunRecord read_record(const std::string& path) {
  return parse_record(read_file(path, kLimits.max_bytes), path);
}

}  // namespace lra

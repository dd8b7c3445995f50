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

std::string examples_of(const Evaluation& evaluation) {
  const std::string examples = counted(evaluation.num_examples, "example");
  if (!evaluation.num_positions) return examples;
  return counted(*evaluation.num_positions, "predicted place") + " of " + examples;
}

void fields(auto& f, Measurement& m) {
  f("mode", m.mode);
  f("dtype", m.dtype);
  f("length", m.length);
  f("batch", m.batch);
  f("steps_per_s", m.steps_per_s);
  f("tokens_per_s", m.tokens_per_s);
  f("examples_per_s", m.examples_per_s);
  f("computed_tokens_per_s", m.computed_tokens_per_s);
  f("slowest_steps_per_s", m.slowest_steps_per_s);
  f("fastest_steps_per_s", m.fastest_steps_per_s);
  f("windows", m.windows);
  f("parts", m.parts);
  f("peak_resident_bytes", m.peak_resident_bytes);
  f("peak_tensor_bytes", m.peak_tensor_bytes);
  f("model_flops", m.model_flops);
  f("gemm_flops_per_s", m.gemm_flops_per_s);
  f("pipeline_steps_per_s", m.pipeline_steps_per_s);
  f("warning", m.warning);
}

void fields(auto& f, SplitSizes& sizes) {
  f("train", sizes.train);
  f("val", sizes.val);
  f("test", sizes.test);
}

void fields(auto& f, EarlierPart& part) {
  f("steps", part.steps);
  f("config_hash", part.config_hash);
  f("fingerprint", part.fingerprint);
  f("change", part.change);
}

void fields(auto& f, Pretraining& pretraining) {
  f("steps", pretraining.steps);
  f("fingerprint", pretraining.fingerprint);
  f("config", pretraining.config);
}

void fields(auto& f, InitialWeights& weights) {
  f("origin", weights.origin);
  f("hash", weights.hash);
  f("fresh", weights.fresh);
  f("unused", weights.unused);
  f("pretraining", weights.pretraining);
}

void fields(auto& f, Tuning& tuning) {
  f("tried", tuning.tried);
  f("steps", tuning.steps);
  f("chosen_by", tuning.chosen_by);
  f("varied", tuning.varied);
}

void fields(auto& f, PythonCode& code) {
  f("source_sha256", code.source_sha256);
  f("packages", code.packages);
}

// The schema goes first and is read apart: nothing else is known of a record before it.
void fields(auto& f, RunRecord& r) {
  f("kind", r.kind);
  f.choice("status", r.status, kStatusNames);
  f("failure", r.failure);
  fields(f, static_cast<RunIdentity&>(r));
  f("validation", r.validation);
  f("checkpoint", r.checkpoint);
  f("data_source", r.data_source);
  f("weights_hash", r.weights_hash);
  f("num_parameters", r.num_parameters);
  f("base_parameters", r.base_parameters);
  f("division", r.division);
  f("division_reason", r.division_reason);
  f("published_setting", r.published_setting);
  f("steps", r.steps);
  f("planned_steps", r.planned_steps);
  f("preset_steps", r.preset_steps);
  f("test_split_examples", r.test_split_examples);
  f("data_examples", r.data_examples);
  f("examples", r.examples);
  f("tokens", r.tokens);
  f("computed_tokens", r.computed_tokens);
  f("train_seconds", r.train_seconds);
  f("total_seconds", r.total_seconds);
  f("train_tokens_per_s", r.train_tokens_per_s);
  f("train_examples_per_s", r.train_examples_per_s);
  f("peak_resident_bytes", r.peak_resident_bytes);
  f("peak_device_bytes", r.peak_device_bytes);
  f("estimated_resident_bytes", r.estimated_resident_bytes);
  f("ended_by", r.ended_by);
  f("skipped_steps", r.skipped_steps);
  f("roll_backs", r.roll_backs);
  f("undone_steps", r.undone_steps);
  f("warnings", r.warnings);
  f("data_checks", r.data_checks);
  f("earlier_parts", r.earlier_parts);
  f("initial_weights", r.initial_weights);
  f("tuning", r.tuning);
  f("train", r.train);
  f("val", r.val);
  f("test", r.test);
  f("best_val", r.best_val);
  f("val_curve", r.val_curve);
  f("measurements", r.measurements);
  f("baselines", r.baselines);
  f("python", r.python);
  f("config", r.config);
  f("provenance", r.provenance);
}

std::string to_string(RunStatus status) {
  const auto index = static_cast<size_t>(status);
  LRA_CHECK_LT(index, kStatusNames.size());
  return kStatusNames[index];
}

double flops_utilisation(const Measurement& m) {
  return static_cast<double>(m.model_flops) * m.steps_per_s / m.gemm_flops_per_s;
}

std::string to_json(const Measurement& measurement) {
  return json_text(RecordWriter::to_object(measurement), 2) + "\n";
}

Measurement parse_measurement(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, name, kLimits);
  Measurement measurement;
  RecordReader::from_object(JsonFields(json, name), measurement);
  return measurement;
}

double two_class_chance_limit(int64_t num_examples) {
  LRA_CHECK_GT(num_examples, 0);
  return 50 + 100 * 3 * std::sqrt(0.25 / static_cast<double>(num_examples));
}

std::string edited_presets_of(const RunRecord& record) {
  const std::string_view begin = kEditedPresets;
  for (const std::string& warning : record.warnings.value_or(std::vector<std::string>{})) {
    if (warning.starts_with(begin)) return warning.substr(begin.size());
  }
  return "";
}

std::vector<RunIdentity> identities_of(const RunRecord& record) {
  std::vector<RunIdentity> all = {record};
  for (const EarlierPart& part : record.earlier_parts.value_or(std::vector<EarlierPart>{})) {
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

#include "training/record_findings.h"

#include <algorithm>
#include <filesystem>

#include "base/quoted.h"
#include "base/revision.h"
#include "base/text_format.h"
#include "data/files.h"
#include "io/atomic_file.h"
#include "io/digest.h"
#include "io/toml.h"
#include "mixers/python_layer.h"
#include "records/check_provenance.h"
#include "records/check_record.h"
#include "records/run_identity.h"
#include "tasks/data_doubts.h"
#include "tasks/prepare_data.h"
#include "training/budget.h"
#include "training/data_root.h"
#include "training/fairness.h"
#include "training/new_record.h"
#include "training/presets.h"
#include "training/run_warnings.h"
#include "training/shipped_configs.h"

namespace lra::training {
namespace {

// The sizes of the data. Earlier versions recorded only that of the test; the rest is then assumed
// to be the task's.
std::optional<SplitSizes> known_sizes(const RunRecord& record, const RunConfig& config) {
  if (record.data_examples || record.kind != "train") return record.data_examples;
  const auto wanted = [&](const char* key) {
    const ConfigValue* found = config.task_settings.find(key);
    return found ? std::get<int64_t>(found->value) : 0;
  };
  if (!config.task_settings.find("num_test")) return {};
  return SplitSizes{wanted("num_train"), wanted("num_val"), record.test_split_examples};
}

// True if this program cannot tell what the presets of the run were: others are read here now.
bool has_other_presets(const RunRecord& record) {
  return edited_presets_of(record).empty() && !edited_presets(record.task, record.model).empty();
}

// Facts that follow from settings and presets.
void check_division(const RunRecord& record, const RunRecord& known, Findings& findings) {
  findings.expect_equal("division", record.division, known.division);
  findings.expect_equal("published_setting", record.published_setting, known.published_setting);
  findings.expect_equal("base_parameters", record.base_parameters, known.base_parameters);
  // The words may be others in another version.
  if (record.provenance.lra_version != lra_version()) return;
  findings.expect_equal("division_reason", record.division_reason, known.division_reason);
}

// True if a Python class is not what it was: its parameters and warnings say nothing about the run.
bool has_other_code(const RunRecord& record, const RunRecord& known) {
  return record.python && known.python &&
         record.python->source_sha256 != known.python->source_sha256;
}

void check_facts(const RunRecord& record, const RunRecord& known, Findings& findings) {
  findings.expect_equal("task_title", record.task_title, known.task_title);
  findings.expect_equal("task_version", record.task_version, known.task_version);
  findings.expect_equal("model_title", record.model_title, known.model_title);
  if (has_other_code(record, known)) return;
  findings.expect_equal("num_parameters", record.num_parameters, known.num_parameters);
  if (!has_other_presets(record)) check_division(record, known, findings);
}

void check_source(const RunRecord& record, const RunConfig& config, const tasks::Task& task,
                  Findings& findings) {
  findings.expect_equal("validation", record.validation, task.validation());
  const bool is_generated = record.data_source == "generated";
  findings.expect(record.data_source == "imported" || (is_generated && task.can_generate()),
                  "data_source is " + in_quotes(record.data_source, 100));
  if (!is_generated || !record.data_examples) return;
  const std::string other = size_not_met(config, *record.data_examples);
  findings.expect(other.empty(), "data_source is generated, and there is " + other);
}

void check_steps(const RunRecord& record, const RunConfig& config, const TaskShape& shape,
                 Findings& findings) {
  // A report tells full runs from short ones by it. An earlier version's preset may have had more.
  const int64_t preset = has_other_presets(record) ? 0 : preset_steps(config).value_or(0);
  if (record.preset_steps < preset)
    findings.expect_equal("preset_steps", record.preset_steps, preset);
  // A held-out part is cut from the training split.
  const bool has_size = record.data_examples && record.validation != "heldout";
  if (config.train.epochs == 0 || has_size) {
    const int64_t examples = record.data_examples ? record.data_examples->train : 0;
    findings.expect_equal("planned_steps", record.planned_steps,
                          planned_steps(config.train, examples));
  }
  const int64_t most = record.examples * shape.num_towers * shape.length;
  findings.expect(!record.computed_tokens || record.tokens <= most,
                  "tokens is " + thousands(record.tokens) + "; " + thousands(record.examples) +
                      " examples have at most " + thousands(most));
}

void expect_warning(const RunRecord& record, const std::string& warning, Findings& findings) {
  const auto told = record.warnings.value_or(std::vector<std::string>{});
  findings.expect(std::ranges::find(told, warning) != told.end(),
                  "it lacks the warning: " + warning);
}

// Reports expected warnings that the record lacks. A run that was stopped before its first step has
// not written them yet, and programs before computed_tokens had fewer.
void check_warnings(const RunRecord& record, const RunConfig& config, int64_t num_classes,
                    std::vector<std::string> expected, Findings& findings) {
  if (record.steps == 0 || !record.computed_tokens) return;
  if (record.provenance.lra_version != lra_version()) return;
  const auto add = [&](const std::vector<std::string>& warnings) {
    expected.insert(expected.end(), warnings.begin(), warnings.end());
  };
  TrainConfig train = config.train;
  train.steps = record.planned_steps;
  add(schedule_warnings(train));
  if (record.data_examples) add(size_warnings(config, record));
  add(setting_warnings(config));
  add(baseline_warnings(record, num_classes));
  if (!config.train.is_masked()) add(loss_warnings(record, num_classes));
  add(test_warnings(record));
  for (const std::string& warning : expected) expect_warning(record, warning, findings);
}

// The doubts that an import stored with the run's data, if the data is at hand.
std::vector<std::string> check_stored_doubts(const RunRecord& record, const std::string& path) {
  const RunFolder folder{folder_of(path)};
  if (record.kind != "train" || record.steps == 0 || record.data_source != "imported") return {};
  if (record.provenance.lra_version != lra_version() || !is_file(folder.data_root())) {
    return {};
  }
  Findings findings;
  try {
    const RunConfig config = RunConfig::from_table(record.config);
    const auto dataset =
        tasks::data_at_hand(config.task_spec(), *config.make_task(), data_root_of(folder, ""));
    if (!dataset || dataset->hash() != record.data_hash || !dataset->manifest().doubts) return {};
    for (const std::string& doubt : tasks::doubts_of_contents(*config.make_task(), *dataset)) {
      expect_warning(record, kDataDoubt + doubt, findings);
    }
  } catch (const Error&) {
    return {};  // check_settings() says why
  }
  return findings.lines();
}

// config.toml next to the record, with which every other command refuses to work if it was edited.
std::vector<std::string> check_config_beside(const RunRecord& record, const std::string& path) {
  const std::string file = RunFolder{folder_of(path)}.config();
  if (record.kind != "train" || !path.ends_with("record.json") || !is_file(file)) return {};
  Findings findings;
  try {
    const std::string hash = config_hash(parse_toml_file(file));
    const auto parts = record.earlier_parts.value_or(std::vector<EarlierPart>{});
    const bool is_earlier =
        std::ranges::find(parts, hash, &EarlierPart::config_hash) != parts.end();
    findings.expect(hash == record.config_hash || is_earlier,
                    "config.toml next to it differs from its settings");
  } catch (const Error& error) {
    findings.expect(false, error.what());
  }
  return findings.lines();
}

void check_tokens(const RunRecord& record, const TaskShape& shape, Findings& findings) {
  for (const Measurement& m : record.measurements) {
    if (m.mode != "train" && m.mode != "infer") continue;  // examples of all lengths
    const auto tokens = static_cast<double>(m.batch * m.length * shape.num_towers) * m.steps_per_s;
    constexpr double kRounding = 1e-6;
    findings.expect(std::abs(m.tokens_per_s - tokens) <= kRounding * tokens,
                    m.mode + " at length " + std::to_string(m.length) + ": tokens_per_s is " +
                        fixed(m.tokens_per_s, 1) + "; expected " + fixed(tokens, 1));
  }
}

void check_all(const RunRecord& record, Findings& findings) {
  const RunConfig config = RunConfig::from_table(record.config);
  const RunRecord known =
      record_of(config, record.provenance, record.data_hash, known_sizes(record, config),
                record.initial_weights, edited_presets_of(record));
  const auto task = config.make_task();
  check_facts(record, known, findings);
  if (record.kind == "bench") return check_tokens(record, task->shape(), findings);
  check_source(record, config, *task, findings);
  check_steps(record, config, task->shape(), findings);
  std::vector<std::string> warnings;
  if (!has_other_code(record, known)) warnings = known.warnings.value_or(warnings);
  check_warnings(record, config, task->shape().num_classes, std::move(warnings), findings);
}

// An exported folder has the digests of its files: that of the record, and those of files beside it
// that it names.
std::vector<std::string> check_sums_beside(const std::string& path) {
  const std::string folder = folder_of(path) + "/", file = folder + "SHA256SUMS";
  if (!is_file(file)) return {};
  const std::string sums = read_file(file, uint64_t{1} << 20);
  const std::string record = std::filesystem::path(path).filename();
  std::vector<std::string> findings;
  for (const std::string& name : {record, std::string("README.md"), std::string("config.toml"),
                                  std::string("model.safetensors")}) {
    const std::string of_name = "  " + name + "\n";
    const bool is_named = sums.find(of_name) != std::string::npos;
    if (!is_file(folder + name) || (name != record && !is_named)) continue;
    const std::string line = digest_file(DigestKind::kSha256, folder + name) + of_name;
    if (sums.find(line) != std::string::npos) continue;
    findings.push_back("SHA256SUMS next to it has another digest of " + name +
                       ": one of the two was changed");
  }
  return findings;
}

}  // namespace

std::vector<std::string> check_settings(const RunRecord& record) {
  // A run that failed before it had data has no figure and nothing to judge.
  if (record.kind == "train" && record.data_hash.empty()) return {};
  const bool is_python = mixers::is_python_class(record.model);
  Findings findings;
  findings.expect(!is_python || record.kind != "train" || record.python,
                  "the model is a Python class, and the record does not name its source");
  try {
    check_all(record, findings);
  } catch (const Error& error) {
    findings.expect(
        is_python,
        std::string("its settings are not those of a run of this program: ") + error.what());
  }
  return findings.lines();
}

std::vector<std::string> record_findings(const RunRecord& record, const std::string& path) {
  Findings provenance;
  check_provenance(record, provenance);
  std::vector<std::string> all = check_record(record);
  for (const std::string& finding : provenance.lines()) all.push_back(finding);
  for (std::string& finding : check_settings(record)) all.push_back(std::move(finding));
  for (std::string& finding : check_metrics_beside(record, path)) all.push_back(std::move(finding));
  for (std::string& finding : check_config_beside(record, path)) all.push_back(std::move(finding));
  for (std::string& finding : check_stored_doubts(record, path)) all.push_back(std::move(finding));
  for (std::string& finding : check_sums_beside(path)) all.push_back(std::move(finding));
  return all;
}

}  // namespace lra::training

#include "report/tables/row_groups.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "records/find_setting.h"
#include "report/tables/settings.h"

namespace lra::report {
namespace {

using Variants = std::map<SettingLines, Runs>;         // one task: settings -> runs
using TaskVariants = std::map<std::string, Variants>;  // one model and preset

bool is_self_pretrained(const RunRecord& record) { return record.division == "self-pretrained"; }

// "pretraining=2000 steps (0123abcd)": the digits stand for all settings but the seed.
std::string pretraining_line(const Pretraining& pretraining) {
  constexpr size_t kDigits = 8;
  std::string settings;
  for (const std::string& line : setting_lines(pretraining.config)) settings += line + "\n";
  return "pretraining=" + std::to_string(pretraining.steps) + " steps (" +
         to_hex(hash128(settings)).substr(0, kDigits) + ")";
}

// Everything except the seed that determines what a run measures, one "key=value" each. The initial
// weights of a self-pretrained run follow the seed of its pretraining.
SettingLines settings_of(const RunRecord& record) {
  ConfigTable config = record.config;
  const bool is_pretrained =
      is_self_pretrained(record) && record.initial_weights && record.initial_weights->pretraining;
  if (is_pretrained) config.table("run").erase("initial_weights");
  SettingLines lines = setting_lines(std::move(config));
  lines.insert({"validation=" + record.validation, "division=" + record.division});
  if (is_pretrained) lines.insert(pretraining_line(*record.initial_weights->pretraining));
  return lines;
}

// The settings of controls (lra analyze controls): such runs have rows of their own, which say so.
std::string control_of(const RunRecord& record) {
  const auto field =
      find_setting_as<int64_t>(record.config, "model", "receptive_field").value_or(0);
  const auto order = find_setting_as<std::string>(record.config, "train", "token_order");
  return joined({field > 0 ? "model.receptive_field=" + std::to_string(field) : "",
                 order == "shuffled" ? "train.token_order=shuffled" : ""});
}

std::string run_name(const RunRecord& record) {
  return record.model + " on " + record.task + ", seed " + std::to_string(record.seed);
}

// A finished record tells more about a run than a later one of a copy that was stopped.
bool is_preferred(const RunRecord& a, const RunRecord& b) {
  const auto rank = [](const RunRecord& r) {
    const Provenance& p = r.provenance;
    return std::tuple(r.status == RunStatus::kDone, p.finished_utc, p.started_utc);
  };
  return rank(a) > rank(b);
}

Runs without_repetitions(const std::vector<RunRecord>& records,
                         std::vector<std::string>* warnings) {
  Runs kept;
  std::map<std::tuple<std::string, std::string, std::string, uint64_t>, size_t> seen;
  for (const RunRecord& record : records) {
    if (record.kind != "train") continue;
    if (!record.fingerprint.empty()) {
      const auto key = std::tuple(record.fingerprint, record.model, record.task, record.seed);
      const auto [found, is_new] = seen.emplace(key, kept.size());
      if (!is_new) {
        const RunRecord*& old = kept[found->second];
        if (is_preferred(record, *old)) old = &record;
        warnings->push_back(
            run_name(record) +
            ": the same run was found more than once; the latest finished one counts");
        continue;
      }
    }
    kept.push_back(&record);
  }
  return kept;
}

std::string code_of(const RunRecord& run) { return run.python ? run.python->source_sha256 : ""; }

// Runs with different hashes of something are not averaged. One without a hash, as of data that a
// run failed to read, stays with the first.
template <typename Hash>
Variants split_by(const std::string& what, const Hash& hash_of, const Variants& variants) {
  Variants split;
  for (const auto& [lines, runs] : variants) {
    std::set<std::string> hashes;
    for (const RunRecord* run : runs) hashes.insert(std::invoke(hash_of, *run));
    hashes.erase("");
    for (const RunRecord* run : runs) {
      SettingLines key = lines;
      if (hashes.size() > 1) {
        const std::string hash = std::invoke(hash_of, *run);
        key.insert(hash_line(what, hash.empty() ? *hashes.begin() : hash));
      }
      split[std::move(key)].push_back(run);
    }
  }
  return split;
}

// How many tasks and runs have each label.
std::map<std::string, std::pair<int, int>> label_counts(const TaskVariants& tasks) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& [task, variants] : tasks) {
    for (const auto& [lines, label] : labels_apart(variants)) {
      auto& [num_tasks, num_runs] = counts[label];
      ++num_tasks;
      num_runs += static_cast<int>(variants.at(lines).size());
    }
  }
  return counts;
}

// How much the runs' figures say: those of full runs most, then those of many steps.
std::pair<bool, int64_t> weight_of(const Runs& runs) {
  std::pair<bool, int64_t> most;
  for (const RunRecord* run : runs) {
    if (!has_figure(*run)) continue;
    const bool is_full = shortfall_of(*run).empty();
    most = std::max(most, {is_full, is_full ? 0 : run->steps});
  }
  return most;
}

// Splits the runs of one model, preset and checkpoint into rows.
std::vector<RowGroup> split_rows(const RowHead& head, const TaskVariants& tasks) {
  const auto counts = label_counts(tasks);
  RowGroup main{head};
  std::map<std::string, RowGroup> others;
  for (const auto& [task, variants] : tasks) {
    const auto labels = labels_apart(variants);
    // The one for the main row; of equals, that of most tasks, then of most runs, then by name.
    const auto best = std::max_element(labels.begin(), labels.end(), [&](auto& a, auto& b) {
      return std::tuple(weight_of(variants.at(a.first)), counts.at(a.second), b.second) <
             std::tuple(weight_of(variants.at(b.first)), counts.at(b.second), a.second);
    });
    for (const auto& [lines, runs] : variants) {
      const std::string& label = labels.at(lines);
      if (label == best->second) {
        main.runs[task] = runs;
        main.task_settings[task] = joined({head.settings, label}, "; ");
        if (!label.empty()) main.settings = joined({main.settings, task + ": " + label}, "; ");
      } else {
        RowGroup& other = others.emplace(label, RowGroup{head}).first->second;
        other.settings = other.task_settings[task] = joined({head.settings, label}, "; ");
        other.runs[task] = runs;
      }
    }
  }
  std::vector<RowGroup> rows = {main};
  for (const auto& [label, row] : others) rows.push_back(row);
  return rows;
}

}  // namespace

std::vector<RowGroup> group_runs(const std::vector<RunRecord>& records,
                                 std::vector<std::string>* warnings) {
  std::map<RowHead, TaskVariants> models;
  for (const RunRecord* record : without_repetitions(records, warnings)) {
    models[{record->model, record->preset, record->checkpoint, is_self_pretrained(*record),
            control_of(*record)}][record->task][settings_of(*record)]
        .push_back(record);
  }
  std::vector<RowGroup> rows;
  for (auto& [head, tasks] : models) {
    for (auto& [task, variants] : tasks)
      variants = split_by("code", code_of, split_by("data", &RunRecord::data_hash, variants));
    for (RowGroup& row : split_rows(head, tasks)) rows.push_back(std::move(row));
  }
  return rows;
}

void refuse_mixed_versions(const std::vector<RunRecord>& records) {
  std::map<std::string, const RunRecord*> first;
  for (const RunRecord& record : records) {
    const auto [found, is_new] = first.emplace(record.task, &record);
    const RunRecord& other = *found->second;
    if (other.task_version == record.task_version) continue;
    const auto versioned = [](const RunRecord& r) {
      return "version " + std::to_string(r.task_version) + " (" + run_name(r) + ")";
    };
    throw Error({.where = "task '" + record.task + "'",
                 .what = "the records hold " + versioned(other) + " and " + versioned(record),
                 .expected = "one version, because scores of different versions do not compare",
                 .advice = "make a report per version"});
  }
}

}  // namespace lra::report

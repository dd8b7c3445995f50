#include "report/marks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_format.h"
#include "records/find_setting.h"
#include "report/paper_tables.h"
#include "report/run_facts.h"

namespace lra::report {
namespace {

constexpr std::array<MarkMeaning, 3> kMeanings = {
    MarkMeaning{"†", "suspect data",
                "a check of the data warns, and nobody accepted it; in no average and not compared "
                "with the paper",
                "suspect_data"},
    MarkMeaning{"§", "other settings",
                "fewer steps than the preset has or a part of the test set (in no average), or "
                "settings or data that nobody published; not compared with the paper",
                "other_settings"},
    MarkMeaning{"‡", "not above trivial",
                "a classifier that needs no model is as good, within the interval",
                "not_above_trivial"}};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::string part_of(int64_t part, int64_t whole, const std::string& unit) {
  return part >= whole ? "" : thousands(part) + " of " + thousands(whole) + " " + unit;
}

// Settings of the paper's tasks, and the values that it names.
struct PaperSetting {
  PaperTask task;
  const char* key;
  std::array<int64_t, 4> values;  // those that are not 0
};
constexpr PaperSetting kPaperSettings[] = {{PaperTask::kListops, "length", {2000}},
                                           {PaperTask::kListops, "max_depth", {10}},
                                           {PaperTask::kListops, "max_args", {10}},
                                           {PaperTask::kListops, "min_length", {500}},
                                           {PaperTask::kListops, "max_length", {2000}},
                                           {PaperTask::kText, "length", {4000, 1000, 2000, 3000}},
                                           {PaperTask::kRetrieval, "length", {4000}}};

// Examples of the paper's tasks, in the order of PaperTask.
constexpr std::array<SplitSizes, kNumPaperTasks> kTaskSizes = {
    SplitSizes{.train = 96000, .test = 2000},   SplitSizes{.train = 25000, .test = 25000},
    SplitSizes{.train = 147086, .test = 17437}, SplitSizes{.train = 45000, .test = 10000},
    SplitSizes{.train = 160000, .test = 20000}, SplitSizes{.train = 160000, .test = 20000}};

}  // namespace

const MarkMeaning& meaning_of(MarkKind kind) { return kMeanings.at(static_cast<size_t>(kind)); }

std::string signs_of(const Marks& marks) {
  std::string text;
  for (const Mark& mark : marks) text += meaning_of(mark.kind).sign;
  return text;
}

std::string reasons_of(const Marks& marks) {
  std::string text;
  for (const auto& [kind, reason] : marks) {
    const MarkMeaning& meaning = meaning_of(kind);
    text += (text.empty() ? "" : "; ") + std::string(meaning.sign) + " " +
            std::string(meaning.word) + ": " + reason;
  }
  return text;
}

std::string shortfall_of(const RunRecord& run) {
  if (!run.test) return "";
  const std::string steps = run.preset_steps == 0
                                ? thousands(run.steps) + " steps of no known preset"
                                : part_of(run.steps, run.preset_steps, "steps");
  // The data may be only part of what the settings say.
  const auto whole = find_setting_as<int64_t>(run.config, "task", "num_test").value_or(0);
  return joined({steps, part_of(run.test->num_examples, std::max(run.test_split_examples, whole),
                                "test examples")});
}

std::string suspicion_of(const std::optional<std::vector<CheckFinding>>& checks) {
  std::vector<std::string> parts;
  for (const CheckFinding& finding : checks.value_or(std::vector<CheckFinding>{})) {
    if (!marks_results(finding)) continue;
    parts.push_back(finding.check + (finding.split.empty() ? "" : " (" + finding.split + ")") +
                    ": " + finding.text);
  }
  return joined(parts);
}

std::vector<TaskChange> task_changes_of(const RunRecord& run) {
  std::vector<TaskChange> changes;
  const auto task = paper_task(run.task);
  if (!task) return changes;
  for (const auto& [of, key, values] : kPaperSettings) {
    const auto value = find_setting_as<int64_t>(run.config, "task", key);
    if (of != *task || !value || std::ranges::find(values, *value) != values.end()) continue;
    changes.push_back({key + (" " + thousands(*value)), thousands(values.front())});
  }
  if (!run.data_examples) return changes;
  const SplitSizes& usual = kTaskSizes.at(static_cast<size_t>(*task));
  for (const auto& [count, expected, what] :
       {std::tuple{run.data_examples->train, usual.train, " training examples"},
        {run.data_examples->test, usual.test, " test examples"}}) {
    // The archive of Pathfinder lacks one image of 200,000.
    if (std::abs(count - expected) <= expected / 1000) continue;
    changes.push_back({thousands(count) + what, thousands(expected)});
  }
  return changes;
}

std::string changes_text(const std::vector<TaskChange>& changes) {
  std::vector<std::string> parts;
  for (const auto& [text, paper] : changes) parts.push_back(text + " (" + paper + ")");
  return joined(parts);
}

std::string changed_reason(const std::string& shortfall, const std::vector<TaskChange>& changes,
                           const std::string& departure) {
  constexpr size_t kShown = 2;  // the caption of the table has all
  std::vector<std::string> parts = {shortfall};
  for (size_t i = 0; i < std::min(changes.size(), kShown); ++i) parts.push_back(changes[i].text);
  if (changes.size() > kShown) {
    parts.push_back(std::to_string(changes.size() - kShown) + " more of the task changed");
  }
  parts.push_back(departure);
  return joined(parts);
}

std::string departure_of(const RunRecord& run) {
  if (run.published_setting || is_own_data(run)) return "";
  return run.division_reason.empty() ? "settings that nobody published" : run.division_reason;
}

Marks marks_of(const RunRecord& run) {
  Marks marks;
  if (!has_figure(run)) return marks;
  const auto add = [&](MarkKind kind, const std::string& reason) {
    if (!reason.empty()) marks.push_back({kind, reason});
  };
  add(MarkKind::kSuspect, suspicion_of(run.data_checks));
  add(MarkKind::kChanged,
      changed_reason(shortfall_of(run), task_changes_of(run), departure_of(run)));
  return marks;
}

}  // namespace lra::report

// Marks, and the facts of a run that they tell.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text_format.h"
#include "records/find_setting.h"
#include "report/tables/paper_tables.h"
#include "report/tables/run_facts.h"

namespace lra::report {
namespace {

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

// Training and test examples of the paper's tasks, in the order of PaperTask.
constexpr int64_t kTaskSizes[kNumPaperTasks][2] = {{96000, 2000},   {25000, 25000},
                                                   {147086, 17437}, {45000, 10000},
                                                   {160000, 20000}, {160000, 20000}};

}  // namespace

const std::vector<MarkMeaning>& mark_meanings() {
  static const std::vector<MarkMeaning> meanings = {
      {MarkKind::kSuspect, "†", "suspect data",
       "a check of the data warns, and nobody accepted it; in no average and not compared with the "
       "paper",
       "suspect_data"},
      {MarkKind::kChanged, "§", "other settings",
       "fewer steps than the preset has or a part of the test set (in no average), or settings or "
       "data that nobody published; not compared with the paper",
       "other_settings"},
      {MarkKind::kTrivial, "‡", "not above trivial",
       "not shown, by its interval, to be above a classifier that needs no model",
       "not_above_trivial"}};
  return meanings;
}

void add_mark(Marks& marks, MarkKind kind, const std::string& reason) {
  if (!reason.empty()) marks.push_back({kind, reason});
}

const MarkMeaning& meaning_of(const Mark& mark) {
  return mark_meanings().at(static_cast<size_t>(mark.kind));
}

std::string signs_of(const Marks& marks) {
  return concatenated(marks, [](const Mark& mark) { return meaning_of(mark).sign; });
}

std::string text_of(const Mark& mark) { return meaning_of(mark).word + ": " + mark.reason; }

std::string texts_of(const Marks& marks) { return joined(mapped(marks, text_of), "; "); }

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
  std::vector<std::string> texts;
  for (const CheckFinding& finding : items_of(checks)) {
    if (!marks_results(finding)) continue;
    const std::string split = finding.split.empty() ? "" : " (" + finding.split + ")";
    texts.push_back(finding.check + split + ": " + finding.text);
  }
  return joined(texts);
}

std::string task_changes_of(const RunRecord& run) {
  const auto task = paper_task(run.task);
  if (!task) return "";
  std::vector<std::string> texts;
  for (const auto& [of, key, values] : kPaperSettings) {
    const auto value = find_setting_as<int64_t>(run.config, "task", key);
    if (of != *task || !value || std::ranges::find(values, *value) != values.end()) continue;
    texts.push_back(key + (" " + thousands(*value)) + " (" + thousands(values.front()) + ")");
  }
  const auto compare = [&](int64_t count, int64_t usual, const std::string& what) {
    if (std::abs(count - usual) <= usual / 1000) return;  // Pathfinder's archive lacks one image
    texts.push_back(thousands(count) + what + " (" + thousands(usual) + ")");
  };
  if (run.data_examples) {
    const auto& usual = kTaskSizes[static_cast<size_t>(*task)];
    compare(run.data_examples->train, usual[0], " training examples");
    compare(run.data_examples->test, usual[1], " test examples");
  }
  return joined(texts);
}

std::string departure_of(const RunRecord& run) {
  if (run.published_setting || is_outside_arena(run)) return "";
  if (run.preset == "small") return "small preset";
  return run.division_reason.empty() ? "settings that nobody published" : run.division_reason;
}

}  // namespace lra::report

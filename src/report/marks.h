// Marks that a figure may carry, each for a reason of its own. A mark changes no rank: runs with
// equal settings and budgets are ranked among themselves, whatever their marks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "records/run_record.h"

namespace lra::report {

enum class MarkKind { kSuspect, kChanged, kTrivial };

struct Mark {
  MarkKind kind;
  std::string reason;  // one line
};
using Marks = std::vector<Mark>;  // one of a kind, in the order of MarkKind

struct MarkMeaning {
  std::string_view sign, word;  // "§", "other settings"
  std::string_view meaning;     // one clause
  std::string_view field;       // of formats for programs: "other_settings"
};
const MarkMeaning& meaning_of(MarkKind kind);

// "†§"
std::string signs_of(const Marks& marks);
// "† suspect data: copies (test): ...; § other settings: 100 of 5,000 steps"
std::string reasons_of(const Marks& marks);

// "100 of 5,000 steps, 2,000 of 25,000 test examples": how a run with a figure falls short of a
// full one; empty for a full one. The full number of steps is the preset's own, regardless of the
// run's plan.
std::string shortfall_of(const RunRecord& run);

// What the checks of the data found that was not accepted; empty if that is nothing.
std::string suspicion_of(const std::optional<std::vector<CheckFinding>>& checks);

// A setting or size of one of the paper's tasks that a run changed.
struct TaskChange {
  std::string text;   // "length 32", "3,000 training examples"
  std::string paper;  // "2,000"
  bool operator==(const TaskChange&) const = default;
};
std::vector<TaskChange> task_changes_of(const RunRecord& run);
// "length 32 (2,000), max_depth 3 (10)"
std::string changes_text(const std::vector<TaskChange>& changes);

// Reasons of MarkKind::kChanged, joined; empty if there are none. `departure`: why the settings are
// not published ones.
std::string changed_reason(const std::string& shortfall, const std::vector<TaskChange>& changes,
                           const std::string& departure);
// Why the settings of a benchmark's run are not published ones; empty if they are.
std::string departure_of(const RunRecord& run);

// The marks of a single run. That of a trivial classifier needs an interval: see leaderboard.h.
Marks marks_of(const RunRecord& run);

}  // namespace lra::report

// Facts about one run, for every format, and the marks that its figures may carry, each for a
// reason of its own. A mark changes no rank: runs with equal settings and budgets are ranked among
// themselves, whatever their marks.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"
#include "report/lists.h"

namespace lra::report {

enum class MarkKind { kSuspect, kChanged, kTrivial };

struct Mark {
  MarkKind kind;
  std::string reason;  // one line
};
using Marks = std::vector<Mark>;  // one of a kind, in the order of MarkKind

struct MarkMeaning {
  MarkKind kind;
  std::string sign, word, meaning;  // "§", "other settings", a clause
  std::string field;                // in formats for programs: "other_settings"
};
const std::vector<MarkMeaning>& mark_meanings();  // in the order of MarkKind
const MarkMeaning& meaning_of(const Mark& mark);

// Appends a mark unless the reason is empty.
void add_mark(Marks& marks, MarkKind kind, const std::string& reason);
// "†§"
std::string signs_of(const Marks& marks);
// "other settings: 100 of 5,000 steps"
std::string text_of(const Mark& mark);
// "other settings: 100 of 5,000 steps; not above trivial: 36.85 of root operator"
std::string texts_of(const Marks& marks);

// "100 of 5,000 steps, 2,000 of 25,000 test examples": how a run with a figure falls short of a
// full one; empty for a full one. The full number of steps is the preset's own, regardless of the
// run's plan.
std::string shortfall_of(const RunRecord& run);
// Findings of the checks of the data that were not accepted.
std::string suspicion_of(const std::optional<std::vector<CheckFinding>>& checks);
// Settings and sizes of one of the paper's tasks that the run changed, in parentheses the paper's:
// "length 32 (2,000), 60,000 training examples (96,000)".
std::string task_changes_of(const RunRecord& run);
// Why the settings of a benchmark's run are not published ones.
std::string departure_of(const RunRecord& run);

// "AMD EPYC 9965, 2 threads, cpu, avx512": two speeds compare only if these are equal.
std::string machine_of(const Provenance& provenance);
// "NVIDIA H100 80GB HBM3" or "Intel Xeon, 2 threads": the device that computed, for people.
std::string device_of(const Provenance& provenance);
bool is_on_gpu(const Provenance& provenance);
// The first ten digits of the git revision, with "+changes" for a dirty tree.
std::string revision_of(const Provenance& provenance);

// True if the run has a figure: it is done and was tested.
bool has_figure(const RunRecord& run);

// The validations whose accuracy is finite, of more than 1,000 some.
std::vector<Evaluation> learning_curve(const RunRecord& run);

// True for data of a user's own, whose tasks are named "custom:NAME", and for diagnostic tasks.
bool is_outside_arena(const RunRecord& run);

struct Fact {
  std::string name, value;  // never empty
};

// Its progress and result.
std::vector<Fact> result_facts(const RunRecord& run);
// Its data, program and machine.
std::vector<Fact> provenance_facts(const RunRecord& run);

// The settings as TOML, line by line.
std::vector<std::string> toml_lines(const RunRecord& run);

}  // namespace lra::report

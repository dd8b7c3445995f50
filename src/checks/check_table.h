// The named checks of a task's data: one table, which also writes docs/checks.md.
//
// Goals of the room `checks`: every check has a name that a user can accept, and is silent on
// honest data. Non-goals: to find forged data, to prove data right, to guess what a column means.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check_finding.h"
#include "checks/baseline.h"
#include "checks/published_data.h"
#include "checks/statistics.h"
#include "data/scaling.h"

namespace lra::checks {

// A column that names who or what an example is of, and test examples whose value train has too.
struct SharedGroup {
  std::string column;
  int64_t num_shared = 0, num_test = 0;
};

// Facts about a dataset that the checks need besides its statistics.
struct DataFacts {
  StatsSettings stats = {};
  bool is_own = false;  // a user's own data; else that of a benchmark
  std::vector<std::string> label_names = {};
  std::optional<PublishedData> published = {};  // of a benchmark
  SplitCounts wanted = {};                      // examples that the task's settings ask for
  std::string other_benchmark = {};             // why the examples are not the published ones
  std::vector<SharedGroup> groups = {};         // of a user's own files
  std::vector<Baseline> baselines = {};         // of the task on this data
  Scaling scaling = {};                         // of values
  // Filled by run(): the examples that there are, and their hash where `published` has one.
  SplitCounts counts = {};
  std::string examples_hash = {};
};

enum class Level {
  kNote,     // printed
  kWarning,  // marks results on the data, unless accepted
  kError,    // stops the import
};

// `find` adds a sentence for each thing that it finds in `split`, which may be train itself.
struct Check {
  std::string_view name;  // for --accept
  Level level;
  std::string_view finds;   // for the documentation: what a finding means
  std::string_view advice;  // and what to do about it
  bool judges_shares;       // of examples: not in splits of fewer than 20
  void (*find)(const SplitStats& train, const SplitStats& split, const DataFacts& facts,
               std::vector<std::string>& found);
};

std::span<const Check> all_checks();

// Reads every example of the dataset once, and runs all checks. Throws lra::Error for an error.
// Without a train split nothing is found.
std::vector<CheckFinding> run(const Dataset& dataset, DataFacts facts);

// The checks of a run on data that was checked when it was imported: those that depend on the
// length that the task reads.
std::vector<CheckFinding> run_on_settings(const Dataset& dataset, const DataFacts& facts);

// Marks the warnings of these checks as accepted, and returns the names of those that found
// nothing. Throws lra::Error for the name of no warning.
std::vector<std::string> accept(const std::vector<std::string>& names,
                                std::vector<CheckFinding>& findings);
void refuse_unknown_checks(const std::vector<std::string>& names,
                           const std::string& where = "--accept");

// "warning: overlap, test: 118 of the ...": a line for people.
std::string text_of(const CheckFinding& finding);

// The rows of the table as docs/checks.md shows them.
std::string documentation();

}  // namespace lra::checks

// Results of other publications, shown next to ours and never ranked with them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/tables/paper_tables.h"

namespace lra::report {

struct PublishedResult {
  std::string model, family, source, note = {};
  std::string kind;  // "own", "re-run", "collected", "unverified": see configs/literature.json
  // Percent, in the order of PaperTask; nothing where the source has no figure.
  std::array<std::optional<double>, kNumPaperTasks> accuracy = {};
  std::array<bool, kNumPaperTasks> fail{};  // reported as not learned; `accuracy` is nothing then

  // "86.43", "FAIL", "-".
  std::string text_of(PaperTask task) const;
  // Mean over the first `num_tasks` of PaperTask, FAIL counted as 50 as publications do; nothing
  // when one has no figure.
  std::optional<double> average(int num_tasks) const;
};

struct Literature {
  std::map<std::string, std::string> families;  // of our models, by name
  std::vector<PublishedResult> results;         // best average of six first, then of five
};

// Reads configs/literature.json and adds the eleven models of the Long Range Arena paper;
// `families` are those of our models. Throws lra::Error for a file that is not as described there.
// If the file was edited, `edited` says so: its figures are then unverified, whatever it says of
// them.
Literature read_literature(const std::string& path, std::map<std::string, std::string> families,
                           const std::string& edited = "");

// Empty for a model that has none.
std::string family_of(const Literature& literature, const std::string& model);

}  // namespace lra::report

// One outcome of a named check of a task's data, as the manifest of the data and the records of
// runs keep it.
#pragma once

#include <array>
#include <string>

namespace lra {

enum class CheckLevel {
  kNote,     // printed
  kWarning,  // marks results on this data, unless the user accepted it
};

// Names of the levels, by their number, as records and manifests write them.
inline constexpr std::array kCheckLevelNames = {"note", "warning"};
inline const char* level_name(CheckLevel level) {
  return kCheckLevelNames.at(static_cast<size_t>(level));
}
inline const auto& names_of(CheckLevel) { return kCheckLevelNames; }

struct CheckFinding {
  std::string check = {};  // its name in the table of checks: "copies"
  CheckLevel level = CheckLevel::kWarning;
  std::string split = {};  // "train", "val", "test"; empty if it is of all of them
  std::string text = {};   // one sentence
  bool accepted = false;   // by --accept: a warning that marks nothing
  bool operator==(const CheckFinding&) const = default;
};

// True if results on this data are marked as suspect.
inline bool marks_results(const CheckFinding& finding) {
  return finding.level == CheckLevel::kWarning && !finding.accepted;
}

}  // namespace lra

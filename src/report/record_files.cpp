#include "report/record_files.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "io/atomic_file.h"
#include "records/check_record.h"

namespace lra::report {
namespace {

namespace fs = std::filesystem;

// The files that a search looks for: run records, with or without those of a sweep's runs that it
// did not choose, or analyses.
enum class Wanted { kRuns, kAllRuns, kAnalyses };

bool is_wanted(const fs::path& path, Wanted wanted) {
  if (wanted != Wanted::kAnalyses) return path.filename() == "record.json";
  return path.extension() == ".json" && path.parent_path().filename() == "analysis";
}

// A report is of the runs that a sweep chose.
bool is_left_out(const fs::path& path, Wanted wanted, std::vector<std::string>* problems) {
  if (path.filename() != kTriesFolder || wanted == Wanted::kAllRuns) return false;
  if (wanted == Wanted::kRuns) {
    problems->push_back(path.string() +
                        ": left out; runs of a sweep that were not chosen: name this folder to "
                        "see them");
  }
  return true;
}

// Adds the wanted files below `folder`, through links; a subfolder that may not be opened is a
// problem, not an end. `seen`: folders that need no second look.
void search(const fs::path& folder, Wanted wanted, std::set<fs::path>& seen,
            std::set<fs::path>& found, std::vector<std::string>* problems) {
  std::error_code unknown;
  if (!seen.insert(fs::canonical(folder, unknown)).second) return;
  std::vector<std::string> names;
  try {
    names = names_in(folder.string());
  } catch (const Error& error) {
    problems->push_back(error.what());
  }
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    std::error_code status_error;
    if (fs::is_directory(path, status_error)) {
      if (!is_left_out(path, wanted, problems)) search(path, wanted, seen, found, problems);
    } else if (is_wanted(path, wanted)) {
      const fs::path real = fs::canonical(path, status_error);
      found.insert(status_error ? path : real);
    }
  }
}

// The wanted files in the folders at `paths`; of runs also those that a path names itself.
std::set<fs::path> found_files(const std::vector<std::string>& paths, Wanted wanted,
                               std::vector<std::string>* problems) {
  std::set<fs::path> found, seen;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) {
      problems->push_back(path + ": " + error.message());
      continue;
    }
    if (!fs::is_directory(real, error)) {
      if (wanted != Wanted::kAnalyses) found.insert(real);
      continue;
    }
    const size_t before = found.size(), problems_before = problems->size();
    search(real, wanted, seen, found, problems);
    if (found.size() == before && problems->size() == problems_before) {
      problems->push_back(path + ": no record.json that was not named before");
    }
  }
  return found;
}

std::vector<std::string> pictures_of(const AnalysisRecord& record) {
  std::vector<std::string> names;
  if (record.embeddings) {
    names = {record.embeddings->token_picture, record.embeddings->position_picture};
  }
  if (record.rollout) {
    for (const RolloutExample& example : record.rollout->examples) names.push_back(example.picture);
  }
  return names;
}

bool is_png(std::string_view bytes) {
  return bytes.starts_with(std::string_view("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16));
}

void load_pictures(const fs::path& folder, Analysis& analysis, std::vector<std::string>* problems) {
  for (const std::string& name : pictures_of(analysis.record)) {
    const std::string path = (folder / name).string();
    try {
      std::string bytes = read_file(path, kMostPictureBytes);
      if (is_png(bytes)) {
        analysis.pictures[name] = std::move(bytes);
      } else {
        problems->push_back(path + ": not a PNG picture");
      }
    } catch (const Error& error) {
      problems->push_back(error.what());
    }
  }
}

// The step of the run's weights by the name that the analysis read; nothing if the record does not
// say. A run that is not done may have saved others since.
std::optional<int64_t> recorded_step(const AnalysisRecord& analysis, const RunRecord& run) {
  if (run.status != RunStatus::kDone) return {};
  if (analysis.checkpoint == "last") return run.steps;
  if (analysis.checkpoint == "best" && run.best_val) return run.best_val->step;
  return {};
}

// The reason to leave an analysis out; empty if there is none. The run's warnings, and what the
// checks of its data found, become its own.
std::string reason_to_leave_out(AnalysisRecord& analysis, const fs::path& path) {
  if (analysis.foreign_weights) return "it is of another run's weights";
  if (analysis.other_data) return "it is of data that the run was not made with";
  if (path.stem() != analysis.kind) return "it is of kind '" + analysis.kind + "'";
  const fs::path run = path.parent_path().parent_path() / "record.json";
  std::error_code ignored;
  if (!fs::exists(run, ignored)) return "";
  const RunRecord record = read_record(run.string());
  if (!is_one_of(analysis, identities_of(record))) {
    return "it is of another run: " + text_of(analysis);
  }
  const std::string of = "it is of step " + std::to_string(analysis.step);
  if (analysis.step > record.steps) return of + "; the run has " + std::to_string(record.steps);
  if (const auto step = recorded_step(analysis, record); step && *step != analysis.step) {
    return of + "; the run's " + analysis.checkpoint + " weights are those of " +
           std::to_string(*step) + ": analyze the run again";
  }
  add_warnings_of(record, analysis);
  if (!analysis.data_checks) analysis.data_checks = record.data_checks;
  return "";
}

}  // namespace

std::vector<Analysis> collect_analyses(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems) {
  std::vector<std::string> told;  // paths that cannot be opened: collect_records names them
  std::vector<Analysis> analyses;
  for (const fs::path& path : found_files(paths, Wanted::kAnalyses, &told)) {
    try {
      Analysis analysis{read_analysis(path.string()), {}};
      const std::string reason = reason_to_leave_out(analysis.record, path);
      if (!reason.empty()) {
        problems->push_back(path.string() + ": left out; " + reason);
        continue;
      }
      load_pictures(path.parent_path(), analysis, problems);
      analyses.push_back(std::move(analysis));
    } catch (const Error& error) {
      problems->push_back(error.what());
    }
  }
  return analyses;
}

std::vector<std::string> find_record_files(const std::vector<std::string>& paths,
                                           std::vector<std::string>* problems, bool with_tries) {
  const auto found = found_files(paths, with_tries ? Wanted::kAllRuns : Wanted::kRuns, problems);
  return {found.begin(), found.end()};
}

std::vector<RunRecord> collect_records(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems) {
  std::vector<RunRecord> records;
  for (const std::string& path : find_record_files(paths, problems)) {
    try {
      records.push_back(read_consistent_record(path));
    } catch (const Error& error) {
      problems->push_back(error.what());
    }
  }
  return records;
}

}  // namespace lra::report

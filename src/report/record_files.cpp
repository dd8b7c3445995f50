#include "report/record_files.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "io/atomic_file.h"
#include "report/check_record.h"

namespace lra::report {
namespace {

namespace fs = std::filesystem;

// True if a report reads the file.
using Wanted = bool (*)(const fs::path& path);

bool is_run_record(const fs::path& path) { return path.filename() == "record.json"; }
bool is_analysis(const fs::path& path) {
  return path.extension() == ".json" && path.parent_path().filename() == "analysis";
}

// Adds the wanted files below `folder`; a subfolder that may not be opened is a problem, not an
// end.
void search(const fs::path& folder, Wanted wanted, std::set<fs::path>& found,
            std::vector<std::string>* problems) {
  std::vector<std::string> names;
  try {
    names = names_in(folder.string());
  } catch (const Error& error) {
    problems->push_back(error.what());
  }
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    std::error_code status_error;
    const fs::file_status status = fs::symlink_status(path, status_error);
    if (fs::is_directory(status)) {
      search(path, wanted, found, problems);
    } else if (wanted(path)) {
      const fs::path real = fs::canonical(path, status_error);
      found.insert(status_error ? path : real);
    }
  }
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

}  // namespace

bool is_png(std::string_view bytes) {
  return bytes.starts_with(std::string_view("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16));
}

std::vector<Analysis> collect_analyses(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems) {
  std::set<fs::path> found;
  std::vector<std::string> told;  // folders that cannot be opened: collect_records names them
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (fs::is_directory(real, error)) search(real, is_analysis, found, &told);
  }
  std::vector<Analysis> analyses;
  for (const fs::path& path : found) {
    try {
      Analysis analysis{read_analysis(path.string()), {}};
      if (analysis.record.foreign_weights || analysis.record.other_data) {
        problems->push_back(path.string() + ": left out; it is of " +
                            (analysis.record.foreign_weights
                                 ? "another run's weights"
                                 : "data that the run was not made with"));
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
                                           std::vector<std::string>* problems) {
  std::set<fs::path> found;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) {
      problems->push_back(path + ": " + error.message());
      continue;
    }
    if (!fs::is_directory(real, error)) {
      found.insert(real);
      continue;
    }
    const size_t before = found.size(), problems_before = problems->size();
    search(real, is_run_record, found, problems);
    if (found.size() == before && problems->size() == problems_before) {
      problems->push_back(path + ": no record.json that was not named before");
    }
  }
  return {found.begin(), found.end()};
}

std::vector<RunRecord> collect_records(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems) {
  std::vector<RunRecord> records;
  for (const std::string& path : find_record_files(paths, problems)) {
    try {
      RunRecord record = read_record(path);
      std::vector<std::string> doubts = check_record(record);
      if (doubts.empty()) doubts = check_metrics_beside(record, path);
      if (doubts.empty()) {
        records.push_back(std::move(record));
      } else {
        problems->push_back(path + ": left out; " + doubts[0]);
      }
    } catch (const Error& error) {
      problems->push_back(error.what());
    }
  }
  return records;
}

}  // namespace lra::report

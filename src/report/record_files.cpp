#include "report/record_files.h"

#include <filesystem>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lra::report {
namespace {

namespace fs = std::filesystem;

// Adds the record files below `folder`; a subfolder that may not be opened is a problem, not an
// end.
void search(const fs::path& folder, std::set<fs::path>& found, std::vector<std::string>* problems) {
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
      search(path, found, problems);
    } else if (name == "record.json") {
      const fs::path real = fs::canonical(path, status_error);
      found.insert(status_error ? path : real);
    }
  }
}

}  // namespace

std::vector<RunRecord> collect_records(const std::vector<std::string>& paths,
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
    search(real, found, problems);
    if (found.size() == before && problems->size() == problems_before) {
      problems->push_back(path + ": no record.json that was not named before");
    }
  }
  std::vector<RunRecord> records;
  for (const fs::path& path : found) {
    try {
      records.push_back(read_record(path.string()));
    } catch (const Error& error) {
      problems->push_back(error.what());
    }
  }
  return records;
}

}  // namespace lra::report

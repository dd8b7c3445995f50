// Finding run records, and the analyses of runs, on disk.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "records/analysis_record.h"
#include "records/run_record.h"

namespace lra::report {

// The run records at `paths`, sorted: each a record file, or a folder searched through all its
// subfolders for files called record.json. A subfolder kTriesFolder is left out and named in
// `problems`, unless `with_tries`. A file reached twice counts once. A path without any adds one
// line to `problems`.
std::vector<std::string> find_record_files(const std::vector<std::string>& paths,
                                           std::vector<std::string>* problems,
                                           bool with_tries = false);

// Reads those files, in their order. A file that cannot be read, is not a run record, was edited,
// or is contradicted by the log next to it (read_consistent_record()) adds one line to `problems`
// and is left out.
std::vector<RunRecord> collect_records(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems);

// An analysis with the pictures that its record names: file name -> the bytes of a PNG.
struct Analysis {
  AnalysisRecord record;
  std::map<std::string, std::string> pictures;
};

// Larger pictures stay out of a report, which carries its pictures within itself.
inline constexpr size_t kMostPictureBytes = size_t{256} << 10;

// The analyses at `paths`, found like run records: files KIND.json in folders named analysis. A
// picture that is missing, too large or not a PNG adds a line to `problems`, and so does an
// analysis that is left out because it used other weights or data than the run's, belongs to
// another run than the one whose record is in the folder above it, or is of weights that this run
// has replaced since. A path without analyses is not a problem.
std::vector<Analysis> collect_analyses(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems);

}  // namespace lra::report

// Finding run records on disk.
#pragma once

#include <string>
#include <vector>

#include "base/run_record.h"

namespace lra::report {

// The records at `paths`: each a record file, or a folder searched through all its subfolders for
// files called record.json. Links to folders are not followed; a file reached twice counts once.
// Sorted by path, so the answer does not depend on the file system. What cannot be read, or is not
// a run record, adds one line to `problems` and is left out; so does a path without any record.
std::vector<RunRecord> collect_records(const std::vector<std::string>& paths,
                                       std::vector<std::string>* problems);

}  // namespace lra::report

// Pathfinder metadata as plain text.
// Covers: src/tasks/pathfinder/files.cpp
// Without: read_pathfinder pathfinder_line batch_number parse_numpy read_cell NumpyHeader
#include "fuzz_target.h"
#include "pathfinder_metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lra::fuzz::check_pathfinder_metadata(lra::fuzz::Input(data, size).bytes());
  return 0;
}

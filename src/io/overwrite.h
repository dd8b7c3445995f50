// Protection of a user's files from outputs that are given their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lra {

// A kind of file that a command writes under a name of the user's.
struct OutputKind {
  std::string_view name;  // "a report in HTML"
  // All of them are in the first 4 KiB of such a file, the first one at its beginning.
  std::vector<std::string_view> marks;
};

const OutputKind& png_output();
const OutputKind& trace_output();  // of the profiler

// Throws lra::Error if `path` is a file with content of another kind, such as a record or a data
// set's manifest. `option` is the one that names it.
void refuse_to_overwrite(const std::string& path, const OutputKind& kind,
                         const std::string& option);

}  // namespace lra

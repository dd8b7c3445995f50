#include "tasks/retrieval/pair_checks.h"

#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/text_format.h"
#include "data/files.h"
#include "data/stopping.h"
#include "tasks/retrieval/pair_files.h"

namespace lra::tasks {

void refuse_other_ids(const std::string& pairs, const std::string& ids_name, std::string_view ids) {
  const std::string path =
      (std::filesystem::path(pairs).parent_path() / ids_name).lexically_normal().string();
  if (!is_file(path)) return;
  const auto refuse = [&](int64_t line) {
    throw Error({.where = path + ":" + std::to_string(line),
                 .what = "does not name the papers and label of that line of " + pairs,
                 .expected = "the same pairs in the same order",
                 .advice = "move away the file that is not meant"});
  };
  int64_t num_lines = 0;
  read_pairs(path, 3, [&](const PairLine& other) {
    num_lines = other.line;
    if (ids.empty()) refuse(other.line);
    const PairLine own = parse_pair_line(take_line(ids), 3, pairs, other.line);
    if (own.label != other.label || own.id1 != other.id1 || own.id2 != other.id2) {
      refuse(other.line);
    }
  });
  if (!ids.empty()) refuse(num_lines + 1);
}

}  // namespace lra::tasks

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

std::vector<std::string> doubts_of_ids(const Dataset& dataset,
                                       const std::array<std::string, 3>& ids_files) {
  std::map<std::string, Hash128, std::less<>> text_of;
  std::map<Hash128, std::string> id_of;
  std::set<std::string, std::less<>> with_many_texts, with_text_of_another;
  for (size_t k = 0; k < kPairSplits.size(); ++k) {
    const Split split = dataset.split(kPairSplits[k]);
    const std::string ids = dataset.read_side_file(ids_files[k]);
    std::string_view rest = ids;
    for (int64_t i = 0; i < split.size(); ++i) {
      throw_if_stopped();
      const PairLine pair = parse_pair_line(take_line(rest), 3, ids_files[k], i + 1);
      for (const auto& [id, tower] : {std::pair(pair.id1, 0), std::pair(pair.id2, 1)}) {
        const Hash128 text = hash128(std::as_bytes(split.stored_bytes(i, tower)));
        if (text_of.emplace(id, text).first->second != text) with_many_texts.emplace(id);
        if (id_of.emplace(text, id).first->second != id) with_text_of_another.emplace(id);
      }
    }
  }
  const auto num_ids = static_cast<int64_t>(text_of.size());
  std::vector<std::string> doubts;
  const auto doubt = [&](const auto& found, const std::string& what) {
    const auto count = static_cast<int64_t>(found.size());
    if (100 * count <= num_ids) return;
    doubts.push_back(thousands(count) + " of the " + thousands(num_ids) + " ids " + what +
                     ", the first " + in_quotes(*found.begin()));
  };
  doubt(with_many_texts, "name several texts");
  doubt(with_text_of_another, "name the text of another");
  return doubts;
}

}  // namespace lra::tasks
